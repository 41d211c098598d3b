"""What every page shares: templates, style, the little script, the policy that lets nothing else run, safe writing."""

import base64
import hashlib
import os
import tempfile
from functools import cache
from pathlib import Path
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from reports import figures, texts
from reports.numbers import KINDS
from reports.scores import LEVELS
from reports.words import (
    best_guess_words,
    ceiling_words,
    guess_words,
    in_words,
    kind_words,
    measured_words,
    slice_words,
    stream_words,
    wire_words,
)

HERE = Path(__file__).parent


@cache
def asset(name: str) -> str:
    """Text of style.css or page.js."""
    return (HERE / name).read_text(encoding="utf-8")


def policy(script: str) -> str:
    """Content-Security-Policy: nothing is fetched, and no script runs but the one with this hash."""
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    return (
        "default-src 'none'; style-src 'unsafe-inline'; img-src data:; "
        f"script-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"
    )


def environment() -> Environment:
    """Templates with autoescape; an undefined name is an error."""
    env = Environment(
        loader=PackageLoader("reports", "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    shared: dict[str, Any] = {
        "texts": texts,
        "KINDS": KINDS,
        "LEVELS": LEVELS,
        "in_words": in_words,
        "slice_words": slice_words,
        "stream_words": stream_words,
        "wire_words": wire_words,
        "kind_words": kind_words,
        "guess_words": guess_words,
        "best_guess_words": best_guess_words,
        "ceiling_words": ceiling_words,
        "measured_words": measured_words,
        "key": lambda i: Markup(figures.legend_key(i)),
        "css": Markup(asset("style.css")),
        "script": Markup(asset("page.js")),
        "policy": policy(asset("page.js")),
    }
    env.globals.update(shared)
    return env


def write_page(path: Path, page: str) -> Path:
    """Write a page, whole or not at all; returns its path."""
    with tempfile.NamedTemporaryFile("w", encoding="utf-8", newline="\n", dir=path.parent, delete=False) as file:
        file.write(page)
    os.chmod(file.name, 0o644)
    os.replace(file.name, path)
    return path
