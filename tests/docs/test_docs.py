"""The how-tos and the notebook are run as they stand, with the default preset made tiny."""

import ast
import json
import re
import shlex
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from attacks.base import ATTACKS
from fedre_audit.cli import main
from fedre_audit.config import PRESETS

DOCS = Path(__file__).parents[2] / "docs"
TINY = {"clients": 4, "rounds": 2, "private_images": 150, "auxiliary_images": 150, "attacks": ["ridge"]}
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@pytest.fixture
def tiny(tmp_path, monkeypatch):
    """A working folder with my-images in it, and a quick preset that is quick indeed."""
    draw = np.random.default_rng(0)
    for label in ("cats", "dogs", "owls"):
        folder = tmp_path / "my-images" / label
        folder.mkdir(parents=True)
        for i in range(140):
            Image.fromarray(draw.integers(0, 256, (12, 16, 3), dtype=np.uint8)).save(folder / f"{i}.png")
    monkeypatch.chdir(tmp_path)
    for key, value in TINY.items():
        monkeypatch.setitem(PRESETS["quick"], key, value)


def run_python(source, scope):
    """Runs a block; returns its last value where it ends in an expression, as a notebook would show it."""
    body = ast.parse(source).body
    last = body.pop() if isinstance(body[-1], ast.Expr) else None
    exec(compile(ast.Module(body, []), "block", "exec"), scope)
    return eval(compile(ast.Expression(last.value), "block", "eval"), scope) if last else None


@pytest.mark.parametrize("name", sorted(path.name for path in DOCS.glob("how-to-*.md")))
def test_every_block_of_a_how_to_runs(name, tiny, capsys):
    blocks = BLOCK.findall((DOCS / name).read_text(encoding="utf-8"))
    assert blocks
    before, scope = set(ATTACKS), {"__name__": "how_to"}
    for language, text in blocks:
        if language == "sh":
            for line in text.splitlines():
                words = shlex.split(line)
                assert words[0] == "audit"
                assert main(words[1:]) in ((0, 3) if "--fail-on" in words else (0,)), line
        else:
            run_python(text, scope)
    for added in set(ATTACKS) - before:
        assert added in capsys.readouterr().out
        del ATTACKS._items[added]


def test_the_notebook_runs_and_its_results_show_themselves(tiny):
    cells = json.loads((DOCS / "example.ipynb").read_text(encoding="utf-8"))["cells"]
    scope: dict = {}
    shown = [run_python("".join(cell["source"]), scope) for cell in cells if cell["cell_type"] == "code"]
    pages = [value._repr_html_() for value in shown if hasattr(value, "_repr_html_")]
    assert len(pages) == 2
    assert "NOT_ASSESSED" in pages[0] or "LEVEL" in pages[0] or "FOUND" in pages[0]
    assert pages[1].count("<tr>") == 3
    assert all(path.is_file() for path in shown[-1])
