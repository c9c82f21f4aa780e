"""Numbers on the pages: each says what it is, and none contradicts another one on the same page."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from stretto.cli.main import main
from stretto.core.graph import TaskGraph
from stretto.core.machine_presets import preset
from stretto.racks.machine_work import rack_model
from stretto.racks.workloads.kernels import PAPER_KERNELS
from stretto.reports.racks.belief import BeliefSample, record_sample
from stretto.reports.racks.topology import TOPOLOGY, rack_topology
from stretto.reports.record import record_plan, recording
from stretto.reports.strict_json import packed
from stretto.runlog import RunLog

PATIENCE_MS = 90_000
FLOW = """
name = "flow"

[[task]]
name = "first"
run = "echo 1 > first.txt"
writes = ["first.txt"]
seconds = 1.0

[[task]]
name = "broken"
run = "echo no such luck >&2; exit 3"
reads = ["first.txt"]
writes = ["broken.txt"]
seconds = 2.0

[[task]]
name = "last"
run = "true"
reads = ["broken.txt"]
seconds = 1.0
"""


@pytest.fixture
def page(browser: Any) -> Iterator[Any]:
    context = browser.new_context(viewport={"width": 1280, "height": 900}, color_scheme="light")
    context.set_default_timeout(PATIENCE_MS)
    opened, complaints = context.new_page(), []
    opened.on("pageerror", lambda error: complaints.append(str(error)))
    yield opened
    context.close()
    assert complaints == []


@pytest.fixture(scope="module")
def executed(server: Any, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """A workflow that fails and one that does not, both run for real; their ids."""
    folder, ids = tmp_path_factory.mktemp("flows"), {}
    with pytest.MonkeyPatch.context() as patch, RunLog.open(server.runs) as log:
        patch.setenv("STRETTO_HOME", str(server.runs.parent))
        patch.chdir(folder)
        for name, text, code in (("failed", FLOW, 3), ("done", FLOW.replace("exit 3", "touch broken.txt"), 0)):
            Path(f"{name}.toml").write_text(text)
            assert main(["run", f"{name}.toml", "-c", "cpu:2", "--rerun", "--output", "quiet"]) == code
            ids[name] = log.run("latest").id
    return ids


def ready(page: Any, url: str) -> None:
    page.goto(url)
    page.wait_for_selector("body[data-ready]")


def figures(page: Any) -> dict[str, str]:
    found: dict[str, str] = page.eval_on_selector_all(
        "#figures dl > div",
        "all => Object.fromEntries(all.map(one => [...one.children].map(part => part.textContent)))",
    )
    return found


def answered(page: Any) -> list[list[str]]:
    page.click("#ask-form button")
    page.wait_for_selector("#answer table")
    return [row.inner_text().split("\t") for row in page.query_selector_all("#answer tbody tr")]


def test_a_failed_run_says_what_failed_and_counts_tasks_and_attempts(
    server: Any, page: Any, executed: dict[str, str]
) -> None:
    page.goto(server.url)
    row = page.locator(f"tr:has(a[href='/runs/{executed['failed']}'])")
    row.wait_for()
    outcome = row.locator("td.outcome").inner_text()
    assert outcome == "failed: broken, exit code 3: no such luck; 1 of 3 tasks done"
    ready(page, f"{server.url}/runs/{executed['failed']}")
    found = figures(page)
    assert found["outcome"] == "failed broken, exit code 3: no such luck"
    assert "makespan" not in found
    assert found["tasks"] == "1 of 3"
    assert page.inner_text("#gantt header p") == "2 tasks, 4 attempts"
    assert "2 tasks, 4 attempts" in page.get_attribute("#gantt canvas", "aria-label")


def test_what_if_of_an_executed_run_sets_simulated_beside_simulated(
    server: Any, page: Any, executed: dict[str, str]
) -> None:
    ready(page, f"{server.url}/runs/{executed['done']}")
    rows = answered(page)
    assert ["makespan", "4 s", "4 s", "none"] in rows  # the sum of the chain; the run itself took milliseconds
    assert ["gap", "proven optimal", "proven optimal", "none"] in rows
    assert page.inner_text("#answer thead").count("simulated") == 2
    said = page.inner_text("#answer > p.small")
    assert said.startswith("Both plans are simulated")
    assert "The run itself took " in said


def test_the_form_of_a_failed_workflow_asks_for_a_policy(server: Any, page: Any, executed: dict[str, str]) -> None:
    ready(page, f"{server.url}/runs/{executed['failed']}")
    names = page.eval_on_selector_all("#ask-form input", "all => all.map(one => one.name)")
    assert names == ["policy", "cluster", "time_limit_s"]
    assert ["makespan", "4 s", "4 s", "none"] in answered(page)
    assert "itself took" not in page.inner_text("#answer")  # it did not come to its end


def test_shares_change_by_points_and_gaps_have_one_bound(server: Any, page: Any, ids: dict[str, str]) -> None:
    with server.client() as client:
        asked = {"policy": "round-robin"}
        found = client.post(f"/api/runs/{ids['small']}/what-if", json=asked).json()
    before, after = found["before"]["summary"], found["after"]["summary"]
    assert found["is_simulated"]
    assert before["lower_bound_s"] == after["lower_bound_s"]
    ready(page, f"{server.url}/runs/{ids['small']}")
    page.fill("#ask-form input[name=policy]", "round-robin")
    rows = {row[0]: row[1:] for row in answered(page)}
    for name in ("gap", "utilization"):
        points = 100 * (after[name] - before[name])
        assert rows[name][2].endswith(" points")
        assert float(rows[name][2].removesuffix(" points").replace(",", "")) == pytest.approx(points, rel=0.01)
    grew = float(rows["makespan"][2].removesuffix(" %").replace(",", ""))
    assert grew == pytest.approx(100 * (after["makespan_s"] / before["makespan_s"] - 1), rel=0.01)


def test_a_gap_of_rounding_is_proven_optimal(server: Any, page: Any) -> None:
    from stretto.api import plan

    with RunLog.open(server.runs) as log:
        result = plan(TaskGraph.from_edges([0.1] * 30, [], [], []), "cpu:1")
        with recording(log, "plan", "rounded", {"policy": "heft", "cluster": "cpu:1"}) as run:
            record_plan(run, result, result.to_json() | {"gap": 7.11e-15})
    page.goto(server.url)
    row = page.locator(f"tr:has(a[href='/runs/{run.id}'])")
    row.wait_for()
    assert row.locator("td.outcome").inner_text() == "3 s, proven optimal"
    ready(page, f"{server.url}/runs/{run.id}")
    assert figures(page)["gap"] == "0 % proven optimal"
    assert page.locator("#gantt .hint").inner_text().count("or click explains its placement") == 1


def test_the_output_of_a_task_is_shown_on_the_page(server: Any, page: Any, executed: dict[str, str]) -> None:
    ready(page, f"{server.url}/runs/{executed['failed']}")
    assert "or click shows its output" in page.inner_text("#gantt .hint")
    page.click("#tasks tbody button:has-text('broken') >> nth=0")
    page.wait_for_selector("#gantt pre.output")
    assert page.inner_text("#gantt h3") == "Output of broken"
    assert page.inner_text("#gantt pre.output >> nth=0") == "no such luck\n"
    assert "stderr, attempt 1" in page.inner_text("#gantt")


def test_a_chart_that_explains_nothing_does_not_ask_for_a_click(server: Any, page: Any) -> None:
    with RunLog.open(server.runs) as log, recording(log, "run", "alone", {}) as run:
        run.record("task-finished", "t", device="cpu0", start_s=0.0, end_s=1.0)
        run.finish("done", {})
    ready(page, f"{server.url}/runs/{run.id}")
    hint = page.inner_text("#gantt .hint")
    assert "click" not in hint
    assert "Enter" not in hint
    assert "hover" in hint
    box = page.locator("#gantt canvas").bounding_box()
    page.mouse.click(box["x"] + box["width"] / 3, box["y"] + 38)
    assert page.locator("#gantt h3").count() == 0


def test_bars_of_time_held_show_the_share_that_is_printed(server: Any, page: Any, executed: dict[str, str]) -> None:
    ready(page, f"{server.url}/runs/{executed['done']}")
    rows = page.query_selector_all("#cost tbody tr")
    assert rows
    for row in rows:
        printed = float(row.query_selector("td:nth-child(4)").inner_text().removesuffix(" %"))
        drawn = row.query_selector(".meter i").evaluate("bar => parseFloat(bar.style.width)")
        assert drawn == pytest.approx(printed, rel=0.01)


#: Whether the line of the believed mean passes a place of a chart: a share of the time, and a utilisation.
PASSES = """(canvas, [share, use]) => {
  const x = Math.round(64 + share * (canvas.clientWidth - 80)), y = Math.round(170 - use * 156),
    ratio = canvas.width / canvas.clientWidth, pen = canvas.getContext("2d"),
    pixels = pen.getImageData((x - 2) * ratio, (y - 3) * ratio, 5 * ratio, 7 * ratio).data,
    [r, g, b] = Stretto.series(0).match(/[0-9a-f]{2}/gi).map(part => parseInt(part, 16));
  for (let i = 0; i < pixels.length; i += 4)
    if (Math.abs(pixels[i] - r) + Math.abs(pixels[i + 1] - g) + Math.abs(pixels[i + 2] - b) < 60) return true;
  return false;
}"""


def test_what_is_believed_holds_until_the_next_reading(server: Any, page: Any) -> None:
    model = rack_model(preset("small-rack"), PAPER_KERNELS)
    num = len(model.resources)
    with RunLog.open(server.runs) as log:
        run = log.start("rack", "steps", {"policy": "symphony", "cluster": "small-rack"})
        run.attach(TOPOLOGY, packed(rack_topology(model)))
        for at_s, mean in ((0.0, 0.2), (10.0, 0.8)):
            record_sample(run, BeliefSample(at_s, np.full(num, mean), np.full(num, 0.01)))
        run.finish("done", {})
    ready(page, f"{server.url}/runs/{run.id}")
    page.wait_for_selector("#belief canvas")
    page.wait_for_timeout(300)
    chart = page.locator("#belief canvas")
    assert chart.evaluate(PASSES, [0.5, 0.2])
    assert not chart.evaluate(PASSES, [0.5, 0.5])


def test_a_choice_shows_the_followed_candidate_and_what_a_cheaper_one_missed(
    server: Any, page: Any, ids: dict[str, str]
) -> None:
    ready(page, f"{server.url}/runs/{ids['queue']}")
    rows = [row.inner_text().split("\t") for row in page.query_selector_all("#choices tbody tr")]
    assert rows
    for _, followed, reason, candidates in rows:
        costs = {entry.split()[0]: float(entry.split()[1].replace(",", "")) for entry in candidates.split(", ")}
        assert f"{followed} " in candidates
        assert candidates.count("(chosen)") == 1
        cheapest = min(costs, key=lambda name: costs[name])
        if costs[cheapest] < costs[followed] and reason.startswith(("the default", "a variant", "it saves")):
            assert cheapest in reason
