"""The commands that only read answer damaged and edited files with one line and exit code 2."""

import json
import subprocess
import sys

import pytest

from fedre_audit.cli import main
from tests.reports.make_scores import make_run, scores


def report(folder, made, capsys):
    make_run(folder)
    (folder / "scores.json").write_text(json.dumps(made))
    code = main(["report", str(folder)])
    return code, capsys.readouterr().err


@pytest.mark.parametrize(
    "change",
    [
        lambda s: s["grounds"]["decided"][0].update(ci95=[1.0]),
        lambda s: (s["verdict"].update(worst={}), s.pop("grounds")),
        lambda s: s["verdict"].update(thresholds={"alpha": 0.1, "class_level_tests": 1, "largest_blind_gain_db": 3}),
        lambda s: s["distributions"][0].update(edges=[0.0] * 6),
        lambda s: s["rows"][0].update(value=10**400),
        lambda s: s["volatile"].update({"a/b": 1}),  # no check foresees a key that is not of ours
    ],
)
def test_a_report_of_an_edited_file_is_one_line_and_exit_code_2(tmp_path, capsys, change):
    made = scores()
    change(made)
    code, error = report(tmp_path / "run", made, capsys)
    assert code == 2
    assert error.startswith(f"audit: {tmp_path / 'run' / 'scores.json'}")
    assert error.count("\n") == 1


@pytest.mark.parametrize("there", ["folder", "deep", "a file above"])
def test_a_report_of_what_cannot_be_read_is_one_line_and_exit_code_2(tmp_path, capsys, there):
    path = tmp_path / "run" / "scores.json"
    if there == "a file above":
        path.parent.write_text("")
    elif there == "folder":
        path.mkdir(parents=True)
    else:
        path.parent.mkdir()
        path.write_text("[" * 100_000)
    assert main(["report", str(path.parent)]) == 2
    error = capsys.readouterr().err
    assert str(path) in error
    assert error.count("\n") == 1


def test_strips_of_another_shape_are_one_line_too(tmp_path, capsys):
    make_run(tmp_path)
    strips = tmp_path / "strips" / "strips.json"
    strips.write_text(json.dumps([dict(one, images=3) for one in json.loads(strips.read_text())]))
    assert main(["report", str(tmp_path)]) == 2
    assert capsys.readouterr().err.count("\n") == 1


def test_an_index_names_what_it_cannot_read_and_lists_the_rest(tmp_path, capsys):
    make_run(tmp_path / "sound", strips=0)
    (tmp_path / "odd" / "scores.json").mkdir(parents=True)
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep" / "scores.json").write_text("[" * 100_000)
    assert main(["index", str(tmp_path)]) == 0
    assert "index of 1 runs" in capsys.readouterr().out
    page = (tmp_path / "index.html").read_text()
    assert all(str(tmp_path / name / "scores.json") in page for name in ("odd", "deep"))


def test_development_mode_shows_where_an_error_comes_from(tmp_path):
    make_run(tmp_path)
    made = scores()
    made["volatile"]["a/b"] = 1  # type: ignore[typeddict-unknown-key]
    (tmp_path / "scores.json").write_text(json.dumps(made))
    words = [sys.executable, "-X", "dev", "-m", "fedre_audit", "report", str(tmp_path)]
    done = subprocess.run(words, capture_output=True, text=True)
    assert done.returncode == 1
    assert "KeyError" in done.stderr
    assert "direct cause" in done.stderr
