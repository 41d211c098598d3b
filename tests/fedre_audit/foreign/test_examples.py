"""The examples run as they are, and what they record passes the check."""

import importlib.util
import json
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from fedre_audit.cli import COMMANDS, main
from knowledge_forms.check import check

ROOT = Path(__file__).resolve().parents[3]


def run(example: str, *arguments: str) -> None:
    subprocess.run([sys.executable, str(ROOT / "examples" / example), *arguments], check=True, capture_output=True)


def test_the_plain_loop_records_what_can_be_audited(tmp_path, monkeypatch):
    run("plain_loop.py", str(tmp_path / "uploads"))
    assert check([tmp_path / "uploads"]).problems == []
    out = tmp_path / "run"
    monkeypatch.syspath_prepend(str(ROOT / "examples"))
    text = (ROOT / "examples" / "plain_loop.py").read_text().replace("\\", "")
    documented = text.partition("PYTHONPATH=examples audit ")[2].partition('"""')[0].split()
    words = shlex.split(" ".join(documented).replace("my-uploads", str(tmp_path / "uploads")))
    assert main([*words, "--out", str(out), "--quiet"]) == 0
    assert (out / "report.html").is_file()
    assert json.loads((out / "scores.json").read_text())["verdict"]["level"] in ("CLASS_LEVEL", "SAMPLE_LEVEL")
    page = (ROOT / "docs" / "uploads.md").read_text().replace("\\", "")
    assert " ".join(documented) in " ".join(page.split())


@pytest.mark.skipif(importlib.util.find_spec("flwr") is None, reason="flwr is not installed (pip install flwr)")
def test_the_flower_client_records_what_can_be_audited(tmp_path):
    run("flower_client.py", str(tmp_path / "uploads"))
    checked = check([tmp_path / "uploads"])
    assert checked.problems == []
    assert len(checked.entries["entangled"]) == 9


def test_the_loop_and_its_recording_lines_stay_short():
    lines = (ROOT / "examples" / "plain_loop.py").read_text().splitlines()
    code = [line for line in lines if line.strip() and not line.strip().startswith(("#", '"""', "import", "from"))]
    assert len(code) <= 75
    assert sum("# recorded" in line for line in code) == 3


def test_every_command_and_option_of_the_page_exists():
    from dataclasses import fields

    from fedre_audit.foreign.config import ForeignConfig

    page = (ROOT / "docs" / "uploads.md").read_text()
    commands = set(re.findall(r"`audit ([a-z]+) ", page))
    assert commands == {"check", "import", "export", "list"} <= set(COMMANDS)
    options = {word.replace("-", "_") for word in re.findall(r"`--([a-z-]+)", page)} - {
        "dry_run",
        "out",
        "json",
        "fail_on",
    }
    assert options == {"uploads", "auxiliary", "truth", "encoder", "weights"} & options
    assert options <= {field.name for field in fields(ForeignConfig)}
