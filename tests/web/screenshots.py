"""Screenshots of every page in every state, in real Chromium: ``python tests/web/screenshots.py --out out/screens``.

Widths 1400, 1024 and 390 px, light and dark; an empty server, live and failed runs, 10,000 tasks. A page that reports
an error in the console, or that is wider than its window, ends the command with exit code 1.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from sample_runs import fill
from web_serving import serving

WIDTHS = (1400, 1024, 390)
THEMES = ("light", "dark")
_ARGUMENTS = ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--disable-background-networking"]
_QUIET = {"num_workers": 1, "rate_per_s": 1e6, "burst": 1_000_000}
_TIMEOUT_MS = 120_000
_HEIGHT = 900


def addresses(ids: dict[str, str]) -> dict[str, str]:
    """Return the pages by name: their addresses."""
    compared = {
        "compare-plans": ("plan-heft", "plan-cpop", "plan-round-robin"),
        "compare-trainings": ("train-0", "train-1"),
        "compare-queues": ("queue-saf", "queue-mars"),
    }
    found = {"runs": "/", "api": "/api", "unknown": "/no-such-page", "unknown-run": "/runs/no-such-run"}
    found |= {f"run-{name}": f"/runs/{run_id}" for name, run_id in ids.items()}
    return found | {name: "/compare?runs=" + ",".join(ids[one] for one in chosen) for name, chosen in compared.items()}


@contextmanager
def chromium() -> Iterator[Any]:
    """Chromium of this machine, driven by Playwright."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as driver:
        opened = driver.chromium.launch(executable_path=shutil.which("chromium"), args=_ARGUMENTS)
        yield opened
        opened.close()


def settle(page: Any) -> None:
    """Wait until a page has drawn what it shows; pages without a script are complete at once."""
    if page.query_selector("script[src*='run.js'], script[src*='runs.js'], script[src*='compare.js']"):
        page.wait_for_selector("body[data-ready]")
    page.evaluate("() => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")


class Camera:
    """Takes pictures of pages, and collects what is wrong with them."""

    def __init__(self, browser: Any, out: Path) -> None:
        self.browser, self.out = browser, out
        self.faults: list[str] = []
        self.num_taken = 0

    def take(self, url: str, name: str, widths: Sequence[int], themes: Sequence[str]) -> None:
        """Open a page once; keep a picture of it at each width and in each theme as ``NAME-WIDTH-THEME.png``."""
        size = {"width": widths[0], "height": _HEIGHT}
        context = self.browser.new_context(viewport=size, color_scheme=themes[0], reduced_motion="reduce")
        context.set_default_timeout(_TIMEOUT_MS)
        page = context.new_page()

        def heard(message: Any) -> None:
            if message.type == "error" and "status of 404" not in message.text:
                self.faults.append(f"{name}: {message.text}")

        page.on("console", heard)
        page.on("pageerror", lambda error: self.faults.append(f"{name}: {error}"))
        page.goto(url)
        for width in widths:
            page.set_viewport_size({"width": width, "height": _HEIGHT})
            for theme in themes:
                page.emulate_media(color_scheme=theme)
                settle(page)
                where = f"{name}-{width}-{theme}"
                wide = page.evaluate("document.documentElement.scrollWidth")
                if wide > width:
                    self.faults.append(f"{where}: the page is {wide} px wide")
                page.screenshot(path=self.out / f"{where}.png", full_page=True)
                self.num_taken += 1
        context.close()


def take_all(
    out: Path, *, only: str = "", widths: tuple[int, ...] = WIDTHS, themes: tuple[str, ...] = THEMES
) -> Camera:
    """Take all pictures, or those whose name contains a text."""
    out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder, chromium() as browser:
        camera = Camera(browser, out)
        full, empty = Path(folder) / "full" / "runs.db", Path(folder) / "empty" / "runs.db"
        ids = fill(full)
        with serving(full, **_QUIET) as server, serving(empty, **_QUIET) as bare:
            pages = {name: server.url + path for name, path in addresses(ids).items()} | {"empty": bare.url}
            for name, url in pages.items():
                if only in name:
                    camera.take(url, name, widths, themes)
        return camera


def main() -> int:
    """Take the pictures and print what is wrong."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("out/screens"))
    parser.add_argument("--only", default="", help="Only pages whose name contains this.")
    parser.add_argument("--widths", default=",".join(map(str, WIDTHS)))
    parser.add_argument("--themes", default=",".join(THEMES))
    asked = parser.parse_args()
    widths = tuple(int(one) for one in asked.widths.split(","))
    camera = take_all(asked.out, only=asked.only, widths=widths, themes=tuple(asked.themes.split(",")))
    print(f"{camera.num_taken} pictures in {asked.out}")
    for fault in camera.faults:
        print(fault)
    return 1 if camera.faults else 0


if __name__ == "__main__":
    sys.exit(main())
