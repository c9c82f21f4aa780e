"""The dashboard in a real browser: pages load, charts draw, news arrive, keys work, and nothing complains.

Screenshots are kept under ``out/screens`` so that somebody can look at them.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from web_serving import serving

from stretto import workloads
from stretto.api import plan
from stretto.cli.main import main
from stretto.core.machine_presets import preset
from stretto.racks.machine_work import rack_model
from stretto.racks.workloads.kernels import PAPER_KERNELS
from stretto.reports.racks.belief import BeliefSample, record_sample
from stretto.reports.racks.topology import TOPOLOGY, rack_topology
from stretto.reports.record import record_plan, recording
from stretto.reports.strict_json import packed
from stretto.runlog import RunLog

SCREENS = Path(__file__).parents[2] / "out" / "screens"
PATIENCE_MS = 90_000
#: How many colors a canvas shows: a blank one has one or two.
COLORS = """canvas => {
  const pixels = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data, seen = new Set();
  for (let i = 0; i < pixels.length; i += 4) seen.add(pixels[i] << 16 | pixels[i + 1] << 8 | pixels[i + 2]);
  return seen.size;
}"""
#: What a canvas shows, as one number.
DIGEST = """canvas => {
  const pixels = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data;
  let sum = 0;
  for (let i = 0; i < pixels.length; i++) sum = (sum * 31 + pixels[i]) | 0;
  return sum;
}"""

#: Ends when four frames have been drawn, however long a busy machine takes for them.
FRAMES = """() => new Promise(done => {
  let left = 4;
  const next = () => left-- > 0 ? requestAnimationFrame(next) : done();
  next();
})"""


@pytest.fixture
def page(browser: Any) -> Iterator[Any]:
    """A page that must not complain; what it says is told when it does."""
    context = browser.new_context(viewport={"width": 1280, "height": 900}, color_scheme="light")
    context.set_default_timeout(PATIENCE_MS)
    opened, complaints = context.new_page(), []
    opened.on("console", lambda message: complaints.append(message.text) if message.type == "error" else None)
    opened.on("pageerror", lambda error: complaints.append(str(error)))
    yield opened
    context.close()
    assert complaints == []


def ready(page: Any) -> None:
    """Wait until the run has been drawn."""
    page.wait_for_selector("body[data-ready]")
    drawn(page)


def drawn(page: Any) -> None:
    """Wait until what was changed is on the screen: charts draw with the next frame, or with the one after a resize."""
    page.evaluate(FRAMES)


def shot(page: Any, name: str) -> None:
    SCREENS.mkdir(parents=True, exist_ok=True)
    page.screenshot(path=SCREENS / f"{name}.png", full_page=True)


def test_the_list_shows_runs_and_filters_them(server: Any, page: Any) -> None:
    page.goto(server.url)
    page.wait_for_selector("table.runs tbody tr")
    page.fill("input[name=text]", "lesson")
    page.wait_for_selector("#count:text-matches('^1 of')")
    assert page.locator("table.runs tbody tr").count() == 1
    assert page.inner_text("table.runs tbody tr a") == "lesson"
    shot(page, "runs")
    page.click("table.runs tbody tr a")
    ready(page)
    assert page.inner_text("h1") == "lesson"


@pytest.mark.parametrize(
    ("name", "sections"),
    [
        ("small", ["gantt", "tasks", "map", "use", "graph", "cost"]),
        ("large", ["gantt", "tasks", "map", "use", "graph", "cost"]),
        ("queue", ["waits", "wait-groups", "use", "queue", "choices", "cost"]),
        ("pools", ["waits", "wait-groups", "map", "use", "queue", "cost"]),
        ("lesson", ["training"]),
    ],
)
def test_the_page_of_a_run_draws_its_charts(
    server: Any, page: Any, ids: dict[str, str], name: str, sections: list[str]
) -> None:
    page.goto(f"{server.url}/runs/{ids[name]}")
    ready(page)
    assert page.eval_on_selector_all("#sections > section", "parts => parts.map(part => part.id)") == sections
    for canvas in page.query_selector_all("#sections canvas"):
        assert canvas.evaluate(COLORS) > 4
    shot(page, f"run-{name}")


def test_both_themes_draw_and_the_choice_is_kept(server: Any, page: Any, ids: dict[str, str]) -> None:
    page.goto(f"{server.url}/runs/{ids['small']}")
    ready(page)
    before = page.eval_on_selector("#gantt canvas", DIGEST)
    page.click("#theme")
    drawn(page)
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(20, 21, 23)"
    assert page.eval_on_selector("#gantt canvas", DIGEST) != before
    shot(page, "run-small-dark")
    page.reload()
    ready(page)
    assert page.evaluate("document.documentElement.dataset.theme") == "dark"


def test_the_keyboard_is_enough(server: Any, page: Any, ids: dict[str, str]) -> None:
    page.goto(f"{server.url}/runs/{ids['large']}")
    ready(page)
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "Skip to content"
    page.keyboard.press("Enter")
    page.focus("#gantt canvas")
    outline = page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
    assert outline != "none"
    seen = {page.eval_on_selector("#gantt canvas", DIGEST)}
    for key in ("+", "+", "ArrowRight", "0"):
        page.keyboard.press(key)
        drawn(page)
        seen.add(page.eval_on_selector("#gantt canvas", DIGEST))
    assert len(seen) == 4  # zoomed once, twice, moved; and all again, as before
    page.keyboard.press(".")
    page.keyboard.press("Enter")
    page.wait_for_selector("#gantt h3")
    assert page.inner_text("#gantt h3").startswith("Why t")
    assert page.locator("#gantt tr.chosen").count() == 1


def test_asking_what_if_answers_on_the_page(server: Any, page: Any, ids: dict[str, str]) -> None:
    page.goto(f"{server.url}/runs/{ids['small']}")
    ready(page)
    page.fill("#ask-form input[name=policy]", "round-robin")
    page.click("#ask-form button")
    page.wait_for_selector("#answer table")
    assert "what if, round-robin" in page.inner_text("#answer thead")
    shot(page, "what-if")
    page.click("#answer a")
    ready(page)
    assert "what-if of" in page.inner_text("#about")


def test_another_rule_for_pools_shows_what_it_costs_and_takes(server: Any, page: Any, ids: dict[str, str]) -> None:
    page.goto(f"{server.url}/runs/{ids['pools']}")
    ready(page)
    page.fill("#ask-form input[name=strategy]", "saf")
    page.fill("#ask-form input[name=pool_rule]", "fastest")
    page.click("#ask-form button")
    page.wait_for_selector("#answer table")
    assert "what if, saf, fastest" in page.inner_text("#answer thead")
    rows = [row.inner_text().split("\t") for row in page.query_selector_all("#answer tbody tr")]
    assert {"cost", "mean flow time"} <= {row[0] for row in rows}
    cost = next(row for row in rows if row[0] == "cost")
    assert cost[1].startswith("$")
    assert cost[1] != cost[2]
    shot(page, "what-if-pools")


def test_the_map_of_a_machine_follows_what_is_believed(server: Any, page: Any) -> None:
    model = rack_model(preset("small-rack"), PAPER_KERNELS)
    num = len(model.resources)
    busy = ["smith-waterman", *[None] * (len(model.processors) - 1)]
    with RunLog.open(server.runs) as log:
        run = log.start("rack", "believed", {"policy": "symphony", "cluster": "small-rack"})
        run.attach(TOPOLOGY, packed(rack_topology(model)))
        record_sample(run, BeliefSample(0.0, np.full(num, 0.3), np.full(num, 0.1), running=busy))
        page.goto(f"{server.url}/runs/{run.id}")
        ready(page)
        tile = page.locator("#belief button.tile").first
        assert "30 %" in tile.inner_text()
        assert "10\u201350" in tile.inner_text()
        assert tile.get_attribute("aria-description") == "m1/mem0: estimated load 30 %, 95 % interval 10 % to 50 %"
        assert page.locator("#belief .chip.busy").inner_text().split() == ["cpu0.0.0", "smith-waterman"]
        record_sample(run, BeliefSample(1.0, np.full(num, 0.8), np.full(num, 0.05), running=busy))
        page.wait_for_selector("#belief button.tile:has-text('80 %')")
        page.focus("#belief input[type=range]")
        page.keyboard.press("ArrowLeft")  # back in time; what comes in does not pull it forward
        assert "30 %" in tile.inner_text()
        record_sample(run, BeliefSample(2.0, np.full(num, 0.9), np.full(num, 0.05), running=busy))
        page.wait_for_selector("body[data-ready='3']")
        assert "30 %" in tile.inner_text()
        page.locator("#belief button.tile").nth(2).press("Enter")
        assert page.locator("#belief button.tile").nth(2).get_attribute("aria-pressed") == "true"
        assert "switch0" in page.inner_text("#belief h3 >> nth=-1")
        assert page.eval_on_selector("#belief canvas", COLORS) > 4
        shot(page, "run-belief")
        run.finish("done", {})


def test_a_training_is_followed_while_it_learns(server: Any, page: Any) -> None:
    with RunLog.open(server.runs) as log:
        run = log.start("train", "queue-lesson", {"algorithm": "mars", "procs": 64})
        run.record("row", generation=1, seconds=1.0, train=1.2, validation=1.1, best_validation=1.1, jobs_per_s=9e3)
        page.goto(f"{server.url}/runs/{run.id}")
        ready(page)
        before = page.eval_on_selector("#training canvas", DIGEST)
        for number in (2, 3):
            row = {"train": 1.0 / number, "validation": None, "best_validation": 1.1, "jobs_per_s": 9e3}
            run.record("row", generation=number, seconds=1.0 * number, **row)
        page.wait_for_selector("body[data-ready='3']")
        drawn(page)
        assert page.eval_on_selector("#training canvas", DIGEST) != before
        assert "validation" in page.inner_text("#training .legend")
        judged = {"mars": 9.0, "saf": 12.0}
        run.finish("done", {"judged": judged, "judged_as": "slowdown", "mean_bounded_slowdown": 9.0, "generations": 3})
        page.wait_for_selector("#judged tr.chosen:has-text('mars')")
    shot(page, "run-training-live")


def test_news_of_a_live_run_arrive_while_the_page_is_open(server: Any, page: Any) -> None:
    with RunLog.open(server.runs) as log:
        run = log.start("run", "live", {"engine": "local"})
        run.record("task-started", "first", device="cpu0", at_s=0.0)
        page.goto(f"{server.url}/runs/{run.id}")
        ready(page)
        assert page.inner_text("#state") == "running"
        blank = page.eval_on_selector("#gantt canvas", DIGEST)
        took = []
        for number in range(3):
            begin = time.monotonic()
            run.record("task-finished", f"t{number}", device=f"cpu{number}", start_s=1.0 * number, end_s=number + 1.5)
            page.wait_for_selector(f"body[data-ready='{2 + number}']")
            took.append(time.monotonic() - begin)
        assert page.eval_on_selector("#gantt canvas", DIGEST) != blank
        assert "t2" in page.inner_text("#events")
        print(f"news took {', '.join(f'{seconds:.2f}' for seconds in took)} s to be drawn")
        run.finish("done", {"makespan_s": 3.5})
        page.wait_for_selector("#state:text-is('done')")
    shot(page, "run-live")


def test_a_plan_that_is_being_searched_is_followed_to_its_end(server: Any, page: Any) -> None:
    with server.client() as client:
        body = {
            "workload": "cholesky",
            "cluster": "cpu:4,gpu:2",
            "policy": "annealing",
            "time_limit_s": 4,
            "wait": False,
        }
        run_id = client.post("/api/plan", json=body).json()["run_id"]
        page.goto(f"{server.url}/runs/{run_id}")
        page.wait_for_selector("#progress canvas")
        page.wait_for_selector("#state:text-is('done')")
        page.wait_for_selector("#cost")
    found = page.eval_on_selector_all("#sections > section", "parts => parts.map(part => part.id)")
    assert found == ["gantt", "durations", "tasks", "map", "use", "progress", "graph", "cost"]


def test_the_list_follows_runs_that_begin(server: Any, page: Any) -> None:
    page.goto(server.url)
    page.wait_for_selector("table.runs tbody tr")
    with RunLog.open(server.runs) as log:
        run = log.start("steer", "newcomer", {})
        page.wait_for_selector("text=newcomer")
        assert page.inner_text("table.runs tbody tr:first-child .state") == "running"
        run.finish("done", {})
        page.wait_for_selector("table.runs tbody tr:first-child .state:text-is('done')")


def test_a_new_plan_is_made_from_the_page(server: Any, page: Any) -> None:
    page.goto(server.url)
    page.click("summary")
    page.click("#new button:text-is('Plan')")
    page.wait_for_url("**/runs/*")
    ready(page)
    assert page.inner_text("h1") == "cholesky-8"


def test_a_wrong_name_is_told_on_the_page(server: Any, browser: Any) -> None:
    context = browser.new_context()
    context.set_default_timeout(PATIENCE_MS)
    page = context.new_page()  # a refused request is a line in the console, and rightly so
    for path, said in (
        ("/runs/no-such-run", "There is no run no-such-run in this log."),
        ("/no-such-page", "There is no page at this address."),
    ):
        reply = page.goto(server.url + path)
        assert reply.status == 404
        assert said in page.inner_text("main")
        page.click("main a")
        page.wait_for_selector("table.runs")
    context.close()


def test_a_browser_shows_the_token_once(browser: Any, tmp_path: Path) -> None:
    token = "a-token-of-some-length"
    context = browser.new_context()
    context.set_default_timeout(PATIENCE_MS)
    page = context.new_page()
    with serving(tmp_path / "runs.db", token=token, num_workers=1) as found:
        page.goto(found.url)
        page.fill("input[name=token]", token)
        page.click("button")
        page.wait_for_selector(".empty")  # the list, without runs
        page.reload()
        page.wait_for_selector(".empty")
    context.close()


def test_every_request_is_described_on_a_page_without_a_network(server: Any, page: Any) -> None:
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.goto(server.url)
    page.click("nav >> text=API")
    ready(page)
    assert page.url == f"{server.url}/docs"
    described = page.evaluate("fetch('/openapi.json').then(reply => reply.json())")
    routes = [
        (f"{method.upper()} {path}", operation)
        for path, methods in described["paths"].items()
        for method, operation in methods.items()
    ]
    assert len(routes) >= 17
    assert page.locator("#operations h2").all_inner_texts() == [name for name, _ in routes]
    assert page.locator("#contents a").all_inner_texts() == [name for name, _ in routes]
    for name, operation in routes:
        section = page.locator(f"#{operation['operationId']}")
        shown = section.text_content()
        assert "curl http" in shown, name
        body = operation.get("requestBody")
        fields = [one["name"] for one in operation.get("parameters", [])]
        if body is not None:
            model = body["content"]["application/json"]["schema"]["$ref"].split("/")[-1]
            fields += described["components"]["schemas"][model]["properties"]
        cells = section.locator("td:first-child, th[scope=row]").all_text_contents()
        assert {*fields, *operation["responses"]} <= set(cells), name
    assert all(url.startswith(server.url) for url in asked)
    page.locator("details").evaluate_all("all => all.forEach(one => { one.open = true; })")
    assert page.evaluate("document.documentElement.scrollWidth") <= 1280
    shot(page, "api")
    page.goto(f"{server.url}/api")
    ready(page)
    assert page.inner_text("h1") == "API"


def test_a_small_window_needs_no_sideways_scrolling(server: Any, browser: Any, ids: dict[str, str]) -> None:
    context = browser.new_context(viewport={"width": 400, "height": 800})
    context.set_default_timeout(PATIENCE_MS)
    page = context.new_page()
    page.goto(f"{server.url}/runs/{ids['small']}")
    ready(page)
    assert page.evaluate("document.documentElement.scrollWidth") <= 400
    shot(page, "run-narrow")
    context.close()


def test_a_report_draws_offline_and_explains(recorded: tuple[Path, dict[str, str]], page: Any, tmp_path: Path) -> None:
    path, ids = recorded
    target = tmp_path / "report.html"
    words = ["report", ids["large"], ids["queue"], ids["lesson"], "-o", str(target), "--runs", str(path)]
    assert main(words) == 0
    requests: list[str] = []
    page.on("request", lambda request: requests.append(request.url))
    page.goto(target.as_uri())
    page.wait_for_selector("#run2-training canvas")
    drawn(page)
    for canvas in page.query_selector_all("canvas"):
        assert canvas.evaluate(COLORS) > 4
    page.focus("#run0-gantt canvas")
    page.keyboard.press(".")
    page.keyboard.press("Enter")
    page.wait_for_selector("#run0-gantt tr.chosen")
    shot(page, "report")
    assert requests == [target.as_uri()]


@pytest.mark.long
def test_a_hundred_thousand_tasks_are_drawn_and_zoomed(server: Any, page: Any) -> None:
    with RunLog.open(server.runs) as log, recording(log, "plan", "huge", {"policy": "heft"}) as run:
        record_plan(run, plan(workloads.random_dag(num_tasks=100_000, seed=1), "cpu:24x1.0,gpu:8x5.0"))
    page.goto(f"{server.url}/runs/{run.id}")
    ready(page)
    canvas = page.query_selector("#gantt canvas")
    assert canvas.evaluate(COLORS) > 4
    before = canvas.evaluate(DIGEST)
    page.focus("#gantt canvas")
    for _ in range(40):
        page.keyboard.press("+")
    drawn(page)
    assert canvas.evaluate(DIGEST) != before
    shot(page, "run-huge")
