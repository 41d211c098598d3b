"""Every heavy figure is stored under results/ and was measured with today's code."""

import json

import pytest

from fedre_audit.figures import FIGURES, RESULTS, fingerprint


@pytest.mark.parametrize("name", FIGURES)
def test_figure_is_stored_and_current(name):
    path = RESULTS / f"{name}.json"
    assert path.is_file(), f"run: make figures FIGURES={name}"
    stored = json.loads(path.read_text())
    assert stored["values"]
    assert stored["fingerprint"] == fingerprint(FIGURES[name].sources), f"stale; run: make figures FIGURES={name}"


def test_fingerprint_ignores_comments_and_sees_code(tmp_path):
    sources = []
    for i, text in enumerate(['"""Doc."""\nx = 1  # why\n', "x = 1\n", "x = 2\n"]):
        path = tmp_path / f"{i}.py"
        path.write_text(text)
        sources.append(fingerprint([str(path)]))
    assert sources[0] == sources[1]
    assert sources[0] != sources[2]
