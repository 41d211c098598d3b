"""How a number of scores.json is written on the page: one formatter, and one lookup by JSON pointer.

Everything shown carries its place (`data-path`, RFC 6901) and its exact value (`data-value`) beside the rounded
text, so that a reader, or a test, can hold the page against scores.json.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from markupsafe import Markup, escape

MISSING = "not available"
INVALID = "not a number"
KINDS = {
    "psnr": "dB", "mse": "mse", "ssim": "unit", "retrieval_top1": "share", "retrieval_top5": "share",
    "retrieval_mrr": "unit", "membership_auc": "unit", "membership_tpr_at_1pct": "share",
    "evaluator_accuracy": "share",
}  # fmt: skip


def format_number(value: float | None, kind: str = "plain", *, sign: bool = False) -> str:
    """Text of a number; kind: dB (2 decimals), mse (1), unit (3), share (per cent, 1), id, plain (4 digits).

    A signed share is a difference of two shares, in points, and is cut at −100 and +100.

    >>> format_number(12.734, "dB"), format_number(0.1324, "share"), format_number(-0.5, "dB", sign=True)
    ('12.73', '13.2 %', '−0.50')
    >>> format_number(51300), format_number(None), format_number(0.00667)
    ('51,300', 'not available', '0.00667')
    >>> format_number(-0.831, "share", sign=True), format_number(-1.03, "share", sign=True)
    ('−83.1 points', '−100.0 points')
    """
    if value is None:
        return MISSING
    plus = "+" if sign else ""
    if kind == "share":
        # Ends of a t-interval know no bounds; a difference of two shares has some.
        text = f"{100 * max(-1.0, min(1.0, value)):+.1f} points" if sign else f"{100 * value:.1f} %"
    elif kind == "id":
        text = str(value)
    elif kind in ("dB", "mse", "unit"):
        text = f"{value:{plus},.{ {'dB': 2, 'mse': 1, 'unit': 3}[kind] }f}"
    elif isinstance(value, int) or (value == int(value) and abs(value) < 1e15):
        text = f"{int(value):{plus},d}"
    elif abs(value) >= 1000:
        text = f"{value:{plus},.1f}"
    else:
        text = f"{value:{plus}.4g}"
    return text.replace("-", "−")


def pointer(*keys: object) -> str:
    """JSON pointer of a path of keys and indices."""
    return "".join("/" + str(key).replace("~", "~0").replace("/", "~1") for key in keys)


def look_up(document: Any, path: str) -> Any:
    """Value at a JSON pointer; KeyError or IndexError where there is none."""
    for key in path.split("/")[1:]:
        key = key.replace("~1", "/").replace("~0", "~")
        document = document[int(key)] if isinstance(document, list) else document[key]
    return document


@dataclass(frozen=True)
class Shown:
    """Writes values of one document by their place. Called from the templates."""

    document: Mapping[str, Any]

    def number(self, path: str, kind: str = "plain", *, sign: bool = False, invalid: bool = False) -> Markup:
        """The number at `path`; a null reads "not a number" where `invalid`, else "not available"."""
        value = look_up(self.document, path)
        text = INVALID if value is None and invalid else format_number(value, kind, sign=sign)
        kind_class = "n none" if value is None else "n"
        return Markup('<span class="{}" data-path="{}" data-value="{}">{}</span>').format(
            kind_class, path, json.dumps(value), text
        )

    def interval(self, path: str, kind: str = "plain", *, sign: bool = False) -> Markup:
        """The interval at `path` as [lo, hi]; says so where there is none."""
        ends = look_up(self.document, path)
        if ends is None or None in ends:
            return Markup('<span class="ci none">no interval</span>')
        lo, hi = (self.number(f"{path}/{i}", kind, sign=sign) for i in (0, 1))
        return Markup('<span class="ci">[{}, {}]</span>').format(lo, hi)

    def of_class(self, path: str) -> Markup:
        """Class numbers at `path` (one, a list, or the keys of an object), each with its name where there are names."""
        value = look_up(self.document, path)
        if isinstance(value, list):
            return Markup(", ").join(self.of_class(f"{path}/{i}") for i in range(len(value))) or Markup("none")
        if isinstance(value, dict):
            parts = (Markup("{}{}: {}").format(k, self._named(k), self.anything(path + pointer(k))) for k in value)
            return Markup("; ").join(parts) or Markup("none")
        return self.anything(path) + self._named(value)

    def _named(self, label: Any) -> Markup:
        names = self.document["dataset"].get("class_names", [])
        number = int(label) if str(label).isdecimal() else len(names)
        return Markup(" ({})").format(names[number]) if number < len(names) else Markup()

    def anything(self, path: str) -> Markup:
        """Whatever lies at `path`: numbers by `number`, lists and objects spelled out, text escaped."""
        value = look_up(self.document, path)
        if isinstance(value, bool):
            return Markup("yes" if value else "no")
        if value is None or isinstance(value, int | float):
            return self.number(path)
        if isinstance(value, list):
            return Markup(", ").join(self.anything(f"{path}/{i}") for i in range(len(value))) or Markup("none")
        if isinstance(value, dict):
            parts = (Markup("{}: {}").format(k, self.anything(path + pointer(k))) for k in value)
            return Markup("; ").join(parts) or Markup("none")
        return escape(value)
