"""Log in with a real browser: by the link, and by the form."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from web_serving import PATIENCE_S, Server, serving

TOKEN = "a-token-of-some-length"
CODE = "a-code-of-some-length"


@pytest.fixture
def locked(tmp_path: Path) -> Iterator[Server]:
    with serving(tmp_path / "runs.db", token=TOKEN, login_code=CODE, num_workers=1) as found:
        yield found


def test_a_browser_logs_in_by_the_link_and_by_the_form(locked: Server, browser: Any, tmp_path: Path) -> None:
    """From a page on disk, as the command opens it: another site, after which browsers hold strict cookies back."""
    page_file = tmp_path / "open.html"
    link = f"{locked.url}/login?code={CODE}"
    page_file.write_text(f'<!DOCTYPE html><meta http-equiv="refresh" content="0; url={link}">')
    context = browser.new_context()
    page = context.new_page()
    page.goto(page_file.as_uri())
    page.wait_for_url(f"{locked.url}/", timeout=PATIENCE_S * 1000)
    page.wait_for_selector("#list")
    (cookie,) = context.cookies()
    assert (cookie["httpOnly"], cookie["sameSite"]) == (True, "Strict")
    assert not page.evaluate("document.cookie")
    context.close()

    context = browser.new_context()
    page = context.new_page()
    page.goto(page_file.as_uri())
    page.wait_for_selector("text=already used", timeout=PATIENCE_S * 1000)
    page.fill("input[name=token]", "wrong")
    page.click("button[type=submit]")
    page.wait_for_selector("text=Wrong token", timeout=PATIENCE_S * 1000)
    page.fill("input[name=token]", TOKEN)
    page.click("button[type=submit]")
    page.wait_for_url(re.compile(rf"^{locked.url}/$"), timeout=PATIENCE_S * 1000)
    context.close()
