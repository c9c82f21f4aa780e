"""The command that takes the screenshots works, and no page complains or is wider than its window."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from screenshots import THEMES, WIDTHS

OUT = Path(__file__).parents[2] / "out" / "screens"


@pytest.mark.skipif(shutil.which("chromium") is None, reason="chromium is not installed: make chromium")
@pytest.mark.parametrize(
    ("widths", "themes"),
    [
        ((390,), ("dark",)),
        pytest.param(WIDTHS, THEMES, marks=pytest.mark.long),
    ],  # all of them take a quarter of an hour
    ids=["phone", "all"],
)
def test_all_pages_are_photographed_without_a_complaint(widths: tuple[int, ...], themes: tuple[str, ...]) -> None:
    """In a process of its own, as one runs the command: two browsers of one process disturb each other."""
    pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    script = Path(__file__).with_name("screenshots.py")
    options = ["--out", str(OUT), "--widths", ",".join(map(str, widths)), "--themes", ",".join(themes)]
    done = subprocess.run([sys.executable, script, *options], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert len(list(OUT.glob("*.png"))) >= 20 * len(widths) * len(themes)
