"""Screenshots of the dashboard for the documents: a server of its own, a log with a run of each kind, and Chromium."""

from __future__ import annotations

import contextlib
import io
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image
from playwright.sync_api import sync_playwright

from stretto.cli.main import main as stretto_main
from stretto.core.answers.words import change
from stretto.reports.record import Rows, recording
from stretto.runlog import RunLog

ROOT = Path(__file__).resolve().parent.parent
EXAMPLES = ROOT / "examples"
TRAINING = ROOT / "docs" / "pictures" / "training.json"
PATIENCE_MS = 120_000
#: In CSS pixels; files have 1.5 times as many, for screens that are finer.
WIDTH, FINER = 960, 1.5
#: Colors that a file keeps: pages have few, and so files are small.
NUM_COLORS = 256
NUM_RARE = 48
#: A color of fewer pixels is the edge of a letter.
FEWEST_PIXELS = 30
_SERVE = """
import json, sys
from stretto.web.server import serve
serve(lambda address: print(address, flush=True), **json.loads(sys.argv[1]))
"""
#: Commands whose runs are shown, by the name of the picture; the list shows all of them.
COMMANDS = {
    "rack": ("rack", "small-rack", "--by", "srpt-belief"),
    "queue": ("replay", "jobs.swf.gz", "--strategy", "mars", "--backfill", "promise", "--log"),
    "compared": ("compare", "jobs.swf.gz", "--strategies", "fcfs,wfp3,saf,mars", "--log"),
    "plan": ("plan", "workflow.json", "-c", "lab.toml", "--policy", "heft", "--log"),
}
#: The last part of a page that is shown.
LAST = {
    "runs": "table.runs",
    "queue": "#wait-groups .split > :nth-child(2)",
    "training": "#training",
    "rack": "#belief .map > :first-child",
}
#: The words of the answer, and the first devices of its table.
ANSWER_HEIGHT = 232.0
MARGIN = 16.0


def screenshots(folder: Path) -> None:
    """Make all screenshots, light and dark."""
    with tempfile.TemporaryDirectory() as name, _server(Path(name)) as (url, ids), sync_playwright() as driver:
        browser = driver.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"]
        )
        for theme in ("light", "dark"):
            context = browser.new_context(
                viewport={"width": WIDTH, "height": 900},
                device_scale_factor=FINER,
                color_scheme=theme,  # type: ignore[arg-type]
                reduced_motion="reduce",
            )
            context.set_default_timeout(PATIENCE_MS)
            page = context.new_page()
            page.goto(url)
            page.wait_for_selector("table tbody tr")
            _save(page, folder / f"dashboard-runs-{theme}.png", _end(page, LAST["runs"]))
            for name in ("queue", "training", "rack"):
                _open(page, f"{url}/runs/{ids[name]}")
                _save(page, folder / f"dashboard-{name}-{theme}.png", _end(page, LAST[name]))
            _open(page, f"{url}/runs/{ids['plan']}")
            _save(page, folder / f"plan-{theme}.png", _explained(page))
            context.close()
        browser.close()


def _open(page: Any, address: str) -> None:
    page.goto(address)
    page.wait_for_selector("body[data-ready]")
    page.wait_for_timeout(500)  # charts are drawn with the next frames


def _end(page: Any, selector: str) -> float:
    """Return how far down a part ends, in CSS pixels."""
    box = page.locator(selector).first.bounding_box()
    assert box is not None, selector
    return float(box["y"] + box["height"]) + page.evaluate("window.scrollY") + MARGIN


def _explained(page: Any) -> float:
    """Ask why a task in the middle of the plan is where it is; return how far down the picture shows the answer."""
    page.focus("#gantt canvas")
    for _ in range(20):
        page.keyboard.press(".")
    page.keyboard.press("Enter")
    answer = page.locator("#gantt h3").filter(has_text="Why").first
    answer.wait_for()
    page.wait_for_timeout(500)
    box = answer.bounding_box()
    assert box is not None
    return float(box["y"]) + page.evaluate("window.scrollY") + ANSWER_HEIGHT


def _save(page: Any, path: Path, height: float) -> None:
    """Write the top of a page, in few colors."""
    page.evaluate("document.activeElement?.blur(); window.scrollTo(0, 0)")
    whole = page.evaluate("document.documentElement.scrollHeight")
    clip = {"x": 0, "y": 0, "width": WIDTH, "height": min(height, whole)}
    image = Image.open(io.BytesIO(page.screenshot(clip=clip, full_page=True, animations="disabled"))).convert("RGB")
    _in_few_colors(image).save(path, optimize=True)


def _in_few_colors(image: Image.Image) -> Image.Image:
    """Keep the colors that a picture has most of, and the most different of the others; the rest gets the nearest."""
    pixels = np.asarray(image, dtype=np.int64)
    code, place, count = np.unique(pixels @ [65536, 256, 1], return_inverse=True, return_counts=True)
    colors = np.stack([code >> 16, code >> 8 & 255, code & 255], axis=1)
    order = np.argsort(-count, kind="stable")
    kept = colors[order[: NUM_COLORS - NUM_RARE]]
    away = np.min(((colors[:, None] - kept[None]) ** 2).sum(axis=2), axis=1)
    for _ in range(NUM_RARE):
        kept = np.vstack([kept, colors[np.argmax(np.where(count >= FEWEST_PIXELS, away, 0))]])
        away = np.minimum(away, ((colors - kept[-1]) ** 2).sum(axis=1))
    nearest = np.argmin(((colors[:, None] - kept[None]) ** 2).sum(axis=2), axis=1).astype(np.uint8)
    found = Image.fromarray(nearest[place].reshape(pixels.shape[:2]), mode="P")
    found.putpalette(kept.astype(np.uint8).tobytes())
    return found


@contextlib.contextmanager
def _server(folder: Path) -> Iterator[tuple[str, dict[str, str]]]:
    """Run a server beside a log of example runs; yield its address and the runs by name."""
    runs = folder / "runs.db"
    ids = _record(folder, runs)
    words = [sys.executable, "-c", _SERVE, json.dumps({"port": 0, "runs_path": str(runs), "num_workers": 1})]
    process = subprocess.Popen(words, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        yield process.stdout.readline().strip(), ids
    finally:
        process.send_signal(signal.SIGINT)
        process.wait(60)


def _record(folder: Path, runs: Path) -> dict[str, str]:
    """Run the commands as a user would, next to copies of the example files; return the ids of their runs."""
    for name in ("jobs.swf.gz", "workflow.json", "lab.toml"):
        shutil.copy(EXAMPLES / name, folder)
    os.environ |= {"STRETTO_HOME": str(folder), "STRETTO_CONFIG": os.devnull}
    ids = {}
    with contextlib.chdir(folder), RunLog.open(runs) as log:
        ids["training"] = _training(log)
        for name, words in COMMANDS.items():
            sys.argv = ["stretto", *words]
            with contextlib.redirect_stdout(io.StringIO()):
                assert stretto_main(list(words)) == 0
            ids[name] = log.run("latest").id
    return ids


def _training(log: RunLog) -> str:
    """Record the training whose curves are kept, as ``stretto train`` did."""
    curves = json.loads(TRAINING.read_text())
    command = f"stretto train doppler examples/graph.json -c {curves['cluster']}"
    settings = {"algorithm": "doppler", "cluster": curves["cluster"], "seed": 0, "command": command}
    with recording(log, "train", curves["graph"], settings) as run:
        with Rows(run, "row") as rows:
            for episode, seconds, best_s, mean_s in curves["doppler"]:
                rows.add(episode=episode, seconds=seconds, best_s=best_s, mean_s=mean_s)
        best_s, (other, other_s) = curves["doppler"][-1][2], min(curves["others"].items(), key=lambda one: one[1])
        compared = change(best_s, other_s, "shorter than", "longer than")
        answer = f"After {episode:,} episodes: the plan is {compared} that of {other.replace(', ', ' with ')}."
        run.finish("done", {"answer": answer, "makespan_s": best_s, "opponents": curves["others"]})
    return run.id
