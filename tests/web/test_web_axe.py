"""Accessibility of every page, by axe-core in real Chromium: nothing serious, at two widths and in either theme.

``make axe`` (npm) installs axe-core below ``out/npm``; without it these tests are skipped.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from sample_reports import write_reports
from screenshots import addresses, settle
from web_serving import serving

AXE = Path(__file__).parents[2] / "out" / "npm" / "node_modules" / "axe-core" / "axe.min.js"
pytestmark = pytest.mark.skipif(not AXE.exists(), reason="axe-core is not installed: make axe")
_FAULTS = """async () => (await axe.run(document, { resultTypes: ["violations"] })).violations
  .filter(one => ["serious", "critical"].includes(one.impact))
  .map(one => one.id + ": " + one.nodes.map(node => node.target.join(" ")).slice(0, 4).join(", "))"""


@pytest.fixture(scope="module")
def pages(samples: tuple[Path, dict[str, str]], tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """Every page of a server by name, and every kind of report."""
    path, ids = samples
    quiet = {"num_workers": 1, "rate_per_s": 1e6, "burst": 1_000_000}
    folder = tmp_path_factory.mktemp("axe")
    reports = {name: file.as_uri() for name, file in write_reports(path, ids, folder).items()}
    with serving(path, **quiet) as full, serving(folder / "none" / "runs.db", **quiet) as empty:
        yield {name: full.url + where for name, where in addresses(ids).items()} | {"empty": empty.url} | reports


@pytest.mark.parametrize(("width", "theme"), [(1400, "light"), (390, "dark")])
def test_no_page_has_a_serious_accessibility_fault(browser: Any, pages: dict[str, str], width: int, theme: str) -> None:
    context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=theme, bypass_csp=True)
    context.set_default_timeout(120_000)
    page, faults = context.new_page(), {}
    for name, url in pages.items():
        page.goto(url)
        settle(page)
        if page.query_selector("#runs, body > #gantt, main > #gantt"):
            page.wait_for_selector("body[data-ready]")
        page.add_script_tag(path=AXE)
        found = page.evaluate(_FAULTS)
        if found:
            faults[name] = found
    context.close()
    assert faults == {}
