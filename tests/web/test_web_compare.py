"""Runs are sorted, selected and compared; progress of live ones is told; waits and steered queues are shown."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sample_runs import fill, named_trace
from web_serving import Server, serving

from stretto.queues.replay import replay
from stretto.reports.page.view import compare_view, run_view
from stretto.reports.page.waits import waits_json
from stretto.runlog import RunLog

PATIENCE_MS = 120_000


@pytest.fixture(scope="module")
def sample(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Server, dict[str, str]]]:
    path = tmp_path_factory.mktemp("sample") / "runs.db"
    ids = fill(path, num_large=300)
    with serving(path, num_workers=1, rate_per_s=1e6, burst=1_000_000) as server:
        yield server, ids


@pytest.fixture
def page(browser: Any) -> Iterator[Any]:
    context = browser.new_context(viewport={"width": 390, "height": 844}, accept_downloads=True)
    context.set_default_timeout(PATIENCE_MS)
    opened, complaints = context.new_page(), []
    opened.on("console", lambda message: complaints.append(message.text) if message.type == "error" else None)
    opened.on("pageerror", lambda error: complaints.append(str(error)))
    yield opened
    context.close()
    assert complaints == []


def test_two_runs_are_selected_and_compared_on_a_phone(sample: tuple[Server, dict[str, str]], page: Any) -> None:
    server, ids = sample
    page.goto(server.url)
    page.wait_for_selector("table.runs")
    for name in ("plan-heft", "plan-cpop"):
        page.check(f"input[data-key='select {ids[name]}']")
    page.click("text=Compare 2 runs")
    page.wait_for_selector("body[data-ready]")
    assert page.inner_text("h1") == "Compare 2 runs"
    parts = page.eval_on_selector_all("#sections > section", "all => all.map(one => one.id)")
    assert parts == ["table-0", "policies", "schedules"]
    assert page.locator("#schedules canvas").count() == 2
    assert page.evaluate("document.documentElement.scrollWidth") <= 390


def test_columns_sort_and_rows_open(sample: tuple[Server, dict[str, str]], page: Any) -> None:
    server, _ = sample
    page.set_viewport_size({"width": 1280, "height": 900})
    page.goto(server.url)
    page.wait_for_selector("table.runs")
    page.click("th button:text-is('name')")
    names = page.eval_on_selector_all("td.name", "all => all.map(one => one.textContent.toLowerCase())")
    assert names == sorted(names)
    assert page.get_attribute("th:has(button:text-is('name'))", "aria-sort") == "ascending"
    page.click("tbody tr:first-child td.kind")
    page.wait_for_url("**/runs/*")


def test_tasks_are_searched_and_saved(sample: tuple[Server, dict[str, str]], page: Any, tmp_path: Path) -> None:
    server, ids = sample
    page.goto(f"{server.url}/runs/{ids['large']}")
    page.wait_for_selector("body[data-ready]")
    page.fill("#gantt input[type=search]", "call_reads")
    assert page.inner_text("#gantt .tools [role=status]") == "60 found"
    with page.expect_download() as saved:
        page.click("#tasks button:text-is('Download CSV')")
    saved.value.save_as(tmp_path / "tasks.csv")
    with open(tmp_path / "tasks.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 300
    assert {"task", "category", "device", "start_s", "duration_s", "end_s"} <= set(rows[0])
    assert all(row["task"].startswith("sample_") for row in rows)


def test_progress_of_live_runs_is_told(sample: tuple[Server, dict[str, str]]) -> None:
    server, ids = sample
    with server.client() as client:
        found = {run["id"]: run["live"] for run in client.get("/api/runs").json()["runs"]}
    assert found[ids["live"]]["text"].startswith("74 of 84 tasks, about ")
    assert found[ids["live"]]["share"] == pytest.approx(74 / 84)
    assert found[ids["train-live"]]["text"] == "40 % of 60 s of training"
    assert found[ids["plan-heft"]] is None


def test_waits_stand_beside_baseline_and_record(sample: tuple[Server, dict[str, str]]) -> None:
    server, ids = sample
    with RunLog.open(server.runs) as log:
        waits = run_view(log, ids["queue-saf"])["waits"]
        compared = compare_view(log, [ids["queue-saf"], ids["queue-mars"]])
    assert waits is not None
    assert [row[0] for row in waits["tables"][0]["rows"]] == ["saf", "baseline", "recorded"]
    titles = [table["title"] for table in waits["tables"]]
    assert titles[1:3] == ["Mean wait by partition", "Mean wait by job size"]
    assert titles[-1] == "Longest waits"
    assert waits["tables"][-1]["rows"][0][0].startswith("88")
    assert waits["notes"][0].startswith("Assumed baseline")
    assert [row["name"] for row in compared["spreads"][0]["rows"]] == ["mars", "saf"]
    assert compared["answer"].startswith("mars is best on site-2026 on 128 processors: mean bounded slowdown 17")
    assert compared["answer"].endswith(" below saf.")


def test_waits_that_a_log_does_not_have_are_not_shown() -> None:
    trace = replace(named_trace(60), wait_s=np.full(60, np.nan))
    found = waits_json(replay(trace, 128, strategy="saf"))
    assert found is not None
    assert [row[0] for row in found["tables"][0]["rows"]] == ["saf", "baseline"]
    assert all("recorded" not in table["heads"] for table in found["tables"])
    assert not any("Recorded" in note for note in found["notes"])


def test_runs_that_go_on_say_how_far_they_are(sample: tuple[Server, dict[str, str]]) -> None:
    server, ids = sample
    with RunLog.open(server.runs) as log:
        said = {name: run_view(log, ids[name])["answer"] for name in ("live", "train-live", "steered", "rack")}
    assert said["live"].startswith("Running: 74 of 84 tasks, about ")
    assert said["train-live"] == "Running: 40 % of 60 s of training."
    promises = "promises: 14 given, 9 kept, 1 broken, 0 at risk."
    assert said["steered"] == f"saf orders 10 waiting jobs and moves 10 of them; {promises}"
    assert said["rack"].startswith("The part with the most estimated load is m2/core0.0, at 81 % (95 %: 69 to 93 %)")


def test_the_order_of_a_steered_queue_is_shown_and_its_switch_needs_a_token(
    sample: tuple[Server, dict[str, str]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    server, ids = sample
    with RunLog.open(server.runs) as log:
        found = run_view(log, ids["steered"])["steered"]
    assert found is not None
    assert [job["after"] for job in found["jobs"]] == list(range(1, found["num_waiting"] + 1))
    assert sorted(job["before"] for job in found["jobs"]) == list(range(1, found["num_waiting"] + 1))
    with server.client() as client:
        assert client.post("/api/steering", json={"is_on": False}).status_code == 403
    monkeypatch.setenv("STRETTO_HOME", str(tmp_path))
    token = "a-token-of-some-length"
    with serving(tmp_path / "runs.db", token=token, num_workers=1) as guarded, guarded.client() as client:
        assert client.post("/api/steering", json={"is_on": False}).status_code == 401
        client.headers["Authorization"] = f"Bearer {token}"
        asked = {"is_on": False, "partition": "nobody-steers-this-one"}
        monkeypatch.setenv("SLURM_CONF", str(tmp_path / "no-slurm.conf"))
        said = client.post("/api/steering", json=asked)  # the switch is in the cluster, and there is none here
        assert said.status_code >= 400
        assert "slurm" in said.text.lower()
