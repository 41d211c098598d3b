"""The page of a reproduction: a pure function of reproduce.json."""

import json
from pathlib import Path
from typing import Any

from markupsafe import Markup

from reports.pages import environment, write_page
from reports.schema import SchemaError

KEYS = {"schema_version", "name", "title", "protocol", "preset", "seed", "rows", "reading", "pictures", "provenance"}


def load_reproduction(path: Path) -> dict[str, Any]:
    """Content of a reproduce.json; SchemaError where it is missing or not one of ours."""
    if not path.is_file():
        raise SchemaError(f"{path} does not exist; run `audit reproduce` first")
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise SchemaError(f"{path} is not valid JSON ({error}); run `audit reproduce` again") from error
    if not isinstance(content, dict) or set(content) != KEYS:
        raise SchemaError(f"{path} is not a reproduce.json of this version; run `audit reproduce` again")
    return content


def render_reproduction(content: dict[str, Any]) -> str:
    """One self-contained HTML page. Pictures are SVG text that the reproduction itself drew."""
    pictures = {title: Markup(svg) for title, svg in content["pictures"].items()}
    return environment().get_template("reproduce.html.j2").render(made=content, pictures=pictures)


def write_page_of(run_dir: Path) -> Path:
    """Write reproduce.html beside reproduce.json; returns its path."""
    return write_page(run_dir / "reproduce.html", render_reproduction(load_reproduction(run_dir / "reproduce.json")))
