"""The page that compares policies, in a real browser: offline, small, readable on a phone and in the dark."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import stretto
from stretto.core.trace import Trace
from stretto.queues.workloads.lublin import lublin

HOSTILE = '<script>alert(1)</script>"&'


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str, Trace]:
    made = lublin(800, seed=1, num_procs=64, load=1.0)
    rng = np.random.default_rng(1)
    trace = replace(
        made,
        name=HOSTILE,
        user=rng.integers(0, 12, made.num_jobs).astype(np.int32),
        partition=rng.integers(0, 2, made.num_jobs).astype(np.int32),
        wait_s=rng.integers(0, 9000, made.num_jobs).astype(float),
        origin_unix_s=1.7e9,
        meta={"partition_names": ["short", HOSTILE], "user_names": [f"{HOSTILE}{i}" for i in range(12)]},
    )
    path = tmp_path_factory.mktemp("page") / "queue.html"
    done = stretto.report(trace, path, strategies=["fcfs", "sjf", "saf"], machine=64)
    assert done.num_bytes < 1_000_000
    return path, done.answer, trace


@pytest.fixture
def page(browser: Any) -> Iterator[Any]:
    context = browser.new_context()
    yield context.new_page()
    context.close()


def test_it_says_the_answer_first_and_loads_nothing(written: tuple[Path, str, Trace], page: Any) -> None:
    path, answer, _ = written
    requests: list[str] = []
    dialogs: list[str] = []
    faults: list[str] = []
    page.on("request", lambda request: requests.append(request.url))
    page.on("dialog", lambda dialog: dialogs.append(dialog.message))
    page.on("console", lambda message: faults.append(message.text))
    page.goto(path.as_uri())
    said = page.locator("p.answer").inner_text().replace("\u00a0", " ")
    assert said == answer
    assert (requests, dialogs, faults) == ([path.as_uri()], [], [])
    headings = page.locator("h2").all_inner_texts()
    assert headings[:3] == ["Policies", "Who gains and who loses", "Over time"]
    assert {"Waits by partition", "Waits by job size", "Waits of the largest users"} <= set(headings)
    first = page.locator("section table").first
    assert first.locator("tbody tr").count() == 4
    assert "what really happened" in first.inner_text()
    assert page.locator("svg.area path").count() == 8
    assert HOSTILE in page.locator("h1").inner_text()


def test_a_phone_shows_it_without_sideways_scrolling(written: tuple[Path, str, Trace], page: Any) -> None:
    page.set_viewport_size({"width": 390, "height": 800})
    page.goto(written[0].as_uri())
    assert page.evaluate("document.documentElement.scrollWidth") <= 390


def test_dark_and_print_have_their_colors(written: tuple[Path, str, Trace], page: Any) -> None:
    page.goto(written[0].as_uri())
    ground = "getComputedStyle(document.body).backgroundColor"
    page.emulate_media(color_scheme="light")
    light = page.evaluate(ground)
    page.emulate_media(color_scheme="dark")
    assert page.evaluate(ground) != light
    page.emulate_media(media="print", color_scheme="light")
    assert page.evaluate("getComputedStyle(document.querySelector('.table')).overflowX") == "visible"
