"""`audit list WHAT`: what there is to choose from."""

from collections.abc import Callable, Sequence

from attacks.base import ATTACKS
from fedre_audit.audit.metrics import METRICS, RATES, facts
from fedre_audit.data.base import DATASETS
from fedre_audit.federation.systems import SYSTEMS
from fedre_audit.models.base import FAMILIES, MODELS
from fedre_audit.models.cost import measure
from knowledge_forms.base import FORMS
from knowledge_forms.entangled import MECHANISMS
from knowledge_forms.errors import AuditError

Row = tuple[str, ...]


def first_line(thing: object) -> str:
    """First line of a docstring."""
    return (thing.__doc__ or "").strip().splitlines()[0] if thing.__doc__ else ""


LETTERS = (
    {"R": "random weights", "V": "equal (vanilla) weights"},
    {"S": "one selected", "A": "all averaged"},
    {"R": "representations", "P": "class prototypes"},
)
"""What each letter of a mechanism means, by its place."""


def spelled_out(mechanism: str) -> str:
    """A mechanism in words.

    >>> spelled_out("RAP"), spelled_out("VAR")
    ('random weights, all averaged, of class prototypes', 'equal (vanilla) weights, all averaged, of representations')
    """
    weights, how, items = (words[letter] for words, letter in zip(LETTERS, mechanism, strict=True))
    return f"{weights}, {how}, of {items}"


LISTS: dict[str, tuple[Row, Callable[[], list[Row]]]] = {
    "forms": (
        ("form", "what the label encoding tells", "what it is"),
        lambda: [(name, form().discloses, first_line(form)) for name, form in FORMS.items()],
    ),
    "mechanisms": (
        ("mechanism", "spelled out", "what the label encoding tells"),
        lambda: [(name, spelled_out(name), m.discloses) for name, m in MECHANISMS.items()],
    ),
    "attacks": (
        ("attack", "level", "cost", "what it is"),
        lambda: [(name, a.level, a.cost, first_line(a)) for name, a in ATTACKS.items()],
    ),
    "systems": (("system", "what it is"), lambda: [(name, first_line(s)) for name, s in SYSTEMS.items()]),
    "families": (("family", "members"), lambda: [(name, ", ".join(f)) for name, f in FAMILIES.items()]),
    "models": (
        ("model", "parameters", "FLOPs", "native width", "what it is"),
        lambda: [(name, *map("{:,}".format, measure(build)), first_line(build)) for name, build in MODELS.items()],
    ),
    "datasets": (("data set", "what it is"), lambda: [(name, first_line(d)) for name, d in DATASETS.items()]),
    "metrics": (
        ("metric", "unit", "more leakage is"),
        lambda: [(name, facts(name).unit, facts(name).more_leakage) for name in sorted({*METRICS, *RATES})],
    ),
}


def table(what: str) -> str:
    """A plain table with aligned columns."""
    header, rows = LISTS[what][0], LISTS[what][1]()
    lines = [header, *rows]
    widths = [max(len(line[i]) for line in lines) for i in range(len(header))]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip() for line in lines
    )


def run(command: str, arguments: Sequence[str]) -> int:
    """Print the table named by the one argument."""
    if len(arguments) != 1 or arguments[0] not in LISTS:
        raise AuditError(f"usage: audit list WHAT, where WHAT is one of: {', '.join(sorted(LISTS))}")
    print(table(arguments[0]))
    return 0
