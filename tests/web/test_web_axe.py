"""Accessibility of every page, by axe-core in real Chromium: no serious and no critical fault, in either theme.

``make axe`` (npm) installs axe-core below ``out/npm``; without it these tests are skipped.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from sample_runs import fill
from screenshots import addresses, settle
from web_serving import serving

AXE = Path(__file__).parents[2] / "out" / "npm" / "node_modules" / "axe-core" / "axe.min.js"
pytestmark = pytest.mark.skipif(not AXE.exists(), reason="axe-core is not installed: make axe")
_FAULTS = """async () => (await axe.run(document, { resultTypes: ["violations"] })).violations
  .filter(one => ["serious", "critical"].includes(one.impact))
  .map(one => one.id + ": " + one.nodes.map(node => node.target.join(" ")).slice(0, 4).join(", "))"""


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    folder = tmp_path_factory.mktemp("axe")
    ids = fill(folder / "full" / "runs.db", num_large=2000)
    quiet = {"num_workers": 1, "rate_per_s": 1e6, "burst": 1_000_000}
    with serving(folder / "full" / "runs.db", **quiet) as full, serving(folder / "none" / "runs.db", **quiet) as empty:
        yield {name: full.url + path for name, path in addresses(ids).items()} | {"empty": empty.url}


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_no_page_has_a_serious_accessibility_fault(browser: Any, pages: dict[str, str], theme: str) -> None:
    context = browser.new_context(viewport={"width": 1400, "height": 900}, color_scheme=theme, bypass_csp=True)
    context.set_default_timeout(120_000)
    page, faults = context.new_page(), {}
    for name, url in pages.items():
        page.goto(url)
        settle(page)
        page.add_script_tag(path=AXE)
        found = page.evaluate(_FAULTS)
        if found:
            faults[name] = found
    context.close()
    assert faults == {}
