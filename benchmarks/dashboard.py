"""How quick the server and its pages are: requests, views of large runs, news of live ones, frames of the chart.

``python benchmarks/dashboard.py [--tasks 100000]``; with Chromium installed, pages are measured too.
"""

from __future__ import annotations

import argparse
import json
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx

from stretto import workloads
from stretto.api import plan
from stretto.reports.record import record_plan, recording
from stretto.runlog import RunLog

CLUSTER = "cpu:24x1.0,gpu:8x5.0"
SERVE = """
import json, sys
from stretto.web.server import serve
serve(lambda address: print(address, flush=True), **json.loads(sys.argv[1]))
"""
FRAMES = """async () => {
  const canvas = document.querySelector('#gantt canvas'), took = [];
  canvas.focus();
  for (const key of ['+', '+', '+', 'ArrowRight', 'ArrowRight', '-', '-', '-', '0', '+', '0']) {
    const begin = performance.now();
    canvas.dispatchEvent(new KeyboardEvent('keydown', { key, bubbles: true }));
    await new Promise(done => requestAnimationFrame(() => setTimeout(done, 0)));
    took.push(performance.now() - begin);
  }
  return took;
}"""


@contextmanager
def serving(runs: Path) -> Iterator[str]:
    """Run a server until the block ends."""
    settings = json.dumps({"port": 0, "runs_path": str(runs), "rate_per_s": 1e6, "burst": 1_000_000})
    process = subprocess.Popen([sys.executable, "-c", SERVE, settings], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    try:
        yield process.stdout.readline().strip()
    finally:
        process.terminate()
        process.wait(30)


def timed(what: str, times: int, work: Callable[[], Any]) -> None:
    """Do something several times and print the median and the worst."""
    took = []
    for _ in range(times):
        begin = time.perf_counter()
        work()
        took.append(time.perf_counter() - begin)
    print(f"{what:<52} median {1e3 * statistics.median(took):8.1f} ms   worst {1e3 * max(took):8.1f} ms")


def requests(url: str, large: str) -> None:
    """Measure the API."""
    body = {"workload": "random-dag", "workload_params": {"num_tasks": 100}, "cluster": CLUSTER}
    with httpx.Client(base_url=url, timeout=300) as client:
        client.post("/api/plan", json=body)  # the workers are awake
        client.post("/api/plan", json=body)
        timed("GET /api/health", 50, lambda: client.get("/api/health"))
        timed("GET /api/runs", 20, lambda: client.get("/api/runs"))
        timed("POST /api/plan, 100 tasks with heft", 20, lambda: client.post("/api/plan", json=body))
        timed("GET .../view of the large run, first time", 1, lambda: client.get(f"/api/runs/{large}/view"))
        timed("GET .../view of the large run, again", 5, lambda: client.get(f"/api/runs/{large}/view"))
        timed("GET /api/explain of one of its tasks", 3, lambda: client.get(f"/api/explain/{large}/17"))


def pages(url: str, large: str, log: RunLog) -> None:
    """Measure pages in a browser, where there is one."""
    chromium = shutil.which("chromium")
    if chromium is None:
        print("chromium is not installed: pages are not measured")
        return
    from playwright.sync_api import sync_playwright

    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=chromium, args=["--no-sandbox", "--disable-gpu"])
        page = browser.new_page(viewport={"width": 1360, "height": 900})
        page.set_default_timeout(120_000)

        def load() -> None:
            page.goto(f"{url}/runs/{large}")
            page.wait_for_selector("body[data-ready]")

        timed("page of the large run, until it is drawn", 3, load)
        took = page.evaluate(FRAMES)
        print(f"{'a frame of its chart':<52} median {statistics.median(took):8.1f} ms   worst {max(took):8.1f} ms")
        run = log.start("run", "live", {})
        run.record("task-finished", "t", device="cpu0", start_s=0.0, end_s=1.0)
        page.goto(f"{url}/runs/{run.id}")
        page.wait_for_selector("body[data-ready]")
        number = 1

        def news() -> None:
            nonlocal number
            number += 1
            run.record("task-finished", f"t{number}", device="cpu0", start_s=float(number), end_s=number + 1.0)
            page.wait_for_selector(f"body[data-ready='{number}']")

        timed("an event, until it is drawn", 20, news)
        run.finish("done", {})
        browser.close()


def main() -> None:
    """Measure everything."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tasks", type=int, default=100_000)
    num_tasks = parser.parse_args().tasks
    with tempfile.TemporaryDirectory() as folder, RunLog.open(Path(folder) / "runs.db") as log:
        graph = workloads.random_dag(num_tasks=num_tasks, seed=1)
        with recording(log, "plan", "large", {"policy": "heft"}) as run:
            record_plan(run, plan(graph, CLUSTER))
        print(f"the large run: {num_tasks:,} tasks on {CLUSTER}")
        with serving(log.path) as url:
            requests(url, run.id)
            pages(url, run.id, log)


if __name__ == "__main__":
    main()
