"""The command that takes the screenshots works, and no page complains or is wider than its window."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from screenshots import THEMES, WIDTHS, take_all

OUT = Path(__file__).parents[2] / "out" / "screens"


@pytest.mark.skipif(shutil.which("chromium") is None, reason="chromium is not installed: make chromium")
def test_all_pages_are_photographed_without_a_complaint() -> None:
    pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    camera = take_all(OUT)
    assert camera.faults == []
    assert camera.num_taken >= 20 * len(WIDTHS) * len(THEMES)
