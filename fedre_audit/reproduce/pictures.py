"""Pictures of a reproduction as SVG text: deterministic (hash salt, no date), readable on light and dark."""

import io
from typing import Any

import matplotlib
from matplotlib.figure import Figure as Canvas

STYLE: Any = {"svg.hashsalt": "fedre-audit", "svg.fonttype": "none", "font.family": "sans-serif"}


def svg_of(canvas: Canvas) -> str:
    """A matplotlib figure as an `<svg>` element without prolog; the same figure gives the same text."""
    stream = io.StringIO()
    with matplotlib.rc_context(STYLE):
        canvas.tight_layout()
        canvas.savefig(stream, format="svg", metadata={"Date": None, "Creator": None, "Format": None, "Type": None})
    text = stream.getvalue()
    return text[text.index("<svg") :]
