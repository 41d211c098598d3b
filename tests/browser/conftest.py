"""Headless Chromium of the system, through Playwright; skipped with a reason where either is missing."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

CHROMIUM = Path(os.environ.get("CHROMIUM", "/usr/bin/chromium"))
AXE = Path(__file__).parents[2] / ".venv" / "axe" / "node_modules" / "axe-core" / "axe.min.js"
ARGUMENTS = [
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
]  # fmt: skip


@pytest.fixture(scope="session")
def browser() -> Iterator[object]:
    """One browser for all tests of this process."""
    api = pytest.importorskip("playwright.sync_api", reason="needs the Python package playwright")
    if not CHROMIUM.is_file():
        pytest.skip(f"needs Chromium at {CHROMIUM}: apt-get install chromium")
    with api.sync_playwright() as playwright:
        launched = playwright.chromium.launch(executable_path=str(CHROMIUM), args=ARGUMENTS)
        yield launched
        launched.close()


@pytest.fixture(scope="session")
def axe() -> str:
    """Source of axe-core, the accessibility checker."""
    if not AXE.is_file():
        pytest.skip(f"needs axe-core at {AXE}: npm install --no-save --prefix .venv/axe axe-core@4")
    return AXE.read_text(encoding="utf-8")
