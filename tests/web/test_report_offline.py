"""Every kind of report is one small file that needs nothing else, and reads on a phone."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from sample_reports import write_reports

MOST_BYTES = 1_000_000
#: Where a page could load something from; a name space of SVG is none.
_ADDRESS = re.compile(r"""(?:src|href|action|poster|data)\s*=\s*["']?(?!#|data:)[^"'\s>]|@import|url\((?!["']?data:)""")


@pytest.fixture(scope="module")
def reports(samples: tuple[Path, dict[str, str]], tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    return write_reports(*samples, tmp_path_factory.mktemp("reports"))


def test_every_report_is_small_and_names_no_address(reports: dict[str, Path]) -> None:
    assert {
        "report-large",
        "report-several",
        "report-files",
        "report-policies",
        "report-gantt",
        "report-curves",
    } <= set(reports)
    for name, path in reports.items():
        content = path.read_bytes()
        assert len(content) <= MOST_BYTES, name
        text = content.decode()
        assert text.count("</html>") == 1, name
        markup = re.sub(r"<script[^>]*>.*?</script>", "", text, flags=re.DOTALL)
        assert not _ADDRESS.search(markup), (name, _ADDRESS.search(markup))
        addresses = set(re.findall(r"https?://[^\s\"'<>)]+", text))
        assert addresses <= {"http://www.w3.org/2000/svg", "http://www.w3.org/1999/xlink"}, name


def test_every_report_opens_without_a_request_a_complaint_or_a_bar_to_scroll(
    reports: dict[str, Path], browser: Any
) -> None:
    context = browser.new_context(viewport={"width": 390, "height": 844}, offline=True)
    context.set_default_timeout(120_000)
    page, faults, asked = context.new_page(), [], []
    page.on("console", lambda message: faults.append(message.text) if message.type == "error" else None)
    page.on("pageerror", lambda error: faults.append(str(error)))
    page.on("request", lambda request: asked.append(request.url))
    for name, path in reports.items():
        page.goto(path.as_uri())
        if page.query_selector("#runs, body > #gantt, main > #gantt"):
            page.wait_for_selector("body[data-ready]")
        wide = page.evaluate("document.documentElement.scrollWidth")
        assert (name, wide) == (name, min(wide, 390))
    context.close()
    assert faults == []
    assert asked == [path.as_uri() for path in reports.values()]
