"""The wall: an attacker module that imports the auditor's side breaks the import contract."""

import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
LINT = Path(sys.executable).with_name("lint-imports")


def lint(folder: Path) -> subprocess.CompletedProcess[str]:
    command = [str(LINT), "--config", str(folder / "pyproject.toml"), "--no-cache"]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, env={"PYTHONPATH": str(folder)})


def test_contract_holds_and_a_planted_peeking_attack_breaks_it(tmp_path):
    for package in ("fedre_audit", "attacks", "reports", "knowledge_forms"):
        shutil.copytree(ROOT / package, tmp_path / package, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    clean = lint(tmp_path)
    assert clean.returncode == 0, clean.stdout + clean.stderr
    (tmp_path / "attacks" / "peek.py").write_text("from fedre_audit.audit import truth\n")
    broken = lint(tmp_path)
    assert broken.returncode == 1
    assert "attacks.peek" in broken.stdout
