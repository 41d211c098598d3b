"""Help texts made from what parsers are made of: types, defaults and docstrings of a configuration. Needs no torch."""

import ast
import inspect
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import MISSING, Field, fields
from typing import Any, Literal, get_args, get_origin, get_type_hints

WIDTH, COLUMN = 110, 30


def field_texts(config: type) -> dict[str, str]:
    """Name of each field of a dataclass -> the docstring below it."""
    body = ast.parse(textwrap.dedent(inspect.getsource(config))).body[0]
    assert isinstance(body, ast.ClassDef)
    found = {}
    for field, text in zip(body.body, body.body[1:], strict=False):
        if isinstance(field, ast.AnnAssign) and isinstance(text, ast.Expr) and isinstance(text.value, ast.Constant):
            found[ast.unparse(field.target)] = str(text.value.value)
    return found


def metavar(hint: Any) -> str:
    """What stands for a value of this type.

    >>> metavar(bool), metavar(Literal["a", "b"]), metavar(list[int] | None), metavar(int | None), metavar(str)
    ('on|off', 'a|b', 'N,N,...', 'N', 'TEXT')
    """
    if get_origin(hint) is Literal:
        return "|".join(get_args(hint))
    kinds = {list[int]: "N,N,...", list[str]: "A,B,...", bool: "on|off", int: "N", float: "X", str: "TEXT"}
    return next(text for kind, text in kinds.items() if kind in (hint, *get_args(hint)))


def shown(value: Any) -> str:
    """A value as it is written on the command line."""
    if isinstance(value, bool):
        return "on" if value else "off"
    return (",".join(map(str, value)) or "none") if isinstance(value, list) else str(value)


def default_of(field: Field, presets: Mapping[str, Mapping[str, Any]]) -> str:
    """The default of a field, or what each preset makes of it; nothing where there is none."""
    default = field.default_factory() if field.default_factory is not MISSING else field.default
    if default in (None, "auto") and any(preset.get(field.name) is not None for preset in presets.values()):
        by_preset = [f"{name} {shown(preset.get(field.name) or 'all')}" for name, preset in presets.items()]
        return f" (preset {'; '.join(by_preset)})"
    return "" if default is None or default is MISSING else f" (default {shown(default)})"


def line(name: str, value: str, text: str) -> str:
    """One option, wrapped."""
    head = f"  --{name.lstrip('-').replace('_', '-')} {value}".rstrip()
    rows = textwrap.wrap(text, WIDTH - COLUMN, break_on_hyphens=False, break_long_words=False) or [""]
    first = f"{head:<{COLUMN}}{rows[0]}" if len(head) < COLUMN - 1 else f"{head}\n{'':{COLUMN}}{rows[0]}"
    return "\n".join([first, *(f"{'':{COLUMN}}{row}" for row in rows[1:])])


def own_lines(own: Sequence[tuple[str, Mapping[str, Any]]]) -> list[str]:
    """Options given as the name and settings of `add_argument`."""
    return [
        line(
            name,
            "" if settings.get("action") == "store_true" else settings.get("metavar", "TEXT"),
            settings["help"],
        )
        for name, settings in own
        if name.startswith("--")
    ]


def config_lines(config: type, presets: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """Every key of a configuration with its docstring, type and default."""
    texts, hints = field_texts(config), get_type_hints(config)
    return [
        line(field.name, metavar(hints[field.name]), texts[field.name] + default_of(field, presets))
        for field in fields(config)
    ]
