"""The page of a plan says what the terminal says: the verdict with its condition, and the notes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from stretto.cli.main import main


def test_a_page_does_not_call_a_plan_optimal_without_its_condition(
    browser: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    tasks = [
        {"name": name, "id": name, "parents": [], "children": [], "runtimeInSeconds": 1, "coreCount": 4, "files": []}
        for name in "abcd"
    ]
    flow = {"name": "f", "schemaVersion": "1.4", "workflow": {"tasks": tasks}}
    (tmp_path / "flow.json").write_text(json.dumps(flow))
    assert main(["plan", "flow.json", "-c", "cpu:1", "--save", "plan.json", "--output", "quiet"]) == 0
    assert main(["report", "plan.json", "-o", "r.html", "--output", "quiet"]) == 0
    page = browser.new_page()
    try:
        page.goto(f"file://{tmp_path}/r.html")
        page.wait_for_selector("dl.facts")
        assert "optimal when a device runs one task at a time" in page.inner_text("dl.facts")
        assert "proven optimal" not in page.inner_text("body")
        assert "Packing is not modeled: a device runs one task at a time." in page.inner_text("body")
    finally:
        page.close()
