"""Replays against AccaSim: the same jobs, their time and their waits."""

from __future__ import annotations

import json
import sys
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from measure import print_table
from peer_venv import peer_python, run_worker
from queue_clock import least_cpu_s

from stretto.core.trace import Trace
from stretto.files.traces.load import save_trace
from stretto.queues.replay import replay

VERSION = "1.1.3"
#: Its methods and what they are called here. Its EASY is not the textbook's (docs/queue.md), so its waits differ.
METHODS = {
    "FirstInFirstOut": ("fcfs", "none"),
    "ShortestJobFirst": ("sjf", "none"),
    "EASYBackfilling": ("fcfs", "easy"),
}


def against_accasim(trace: Trace, num_procs: int, timeout_s: float) -> list[dict[str, Any]]:
    """Run every method on the jobs and print the table."""
    python = peer_python(f"accasim-{VERSION}", f"accasim=={VERSION}", sys.executable)
    theirs = _ask(python, trace, num_procs, timeout_s)
    lines = [("method", "jobs/s", "ours", "ratio", "mean wait", "ours", "differing waits")]
    rows = []
    for method, run in theirs["runs"].items():
        strategy, backfill = METHODS[method]
        result = replay(trace, num_procs, strategy=strategy, backfill=backfill)
        ours_s = least_cpu_s(lambda: replay(trace, num_procs, strategy=strategy, backfill=backfill))  # noqa: B023
        waits = np.array([run["wait_s"][str(job + 1)] for job in range(trace.num_jobs)])
        differing = int(np.count_nonzero(waits != result.wait_s))
        spec = {"strategy": strategy, "backfill": backfill, "peer": f"accasim {VERSION} {method}"}
        rows.append(
            {
                "spec": {**spec, "peer_python": theirs["python"]},
                "instance": f"{trace.name}:0:{trace.num_jobs}",
                "num_procs": num_procs,
                "cpu_s": ours_s,
                "peer_cpu_s": run["cpu_s"],
                "ratio": run["cpu_s"] / ours_s,
                "num_differing": differing,
            }
        )
        lines.append(
            (
                f"{method} ({strategy}, {backfill})",
                f"{trace.num_jobs / run['cpu_s']:,.0f}",
                f"{trace.num_jobs / ours_s:,.0f}",
                f"{run['cpu_s'] / ours_s:,.0f}",
                f"{waits.mean():.2f}",
                f"{result.wait_s.mean():.2f}",
                str(differing),
            )
        )
    print(f"\nAccaSim {VERSION}, first {trace.num_jobs} jobs of {trace.name}, CPU time")
    print_table(lines)
    return rows


def _ask(python: Path, trace: Trace, num_procs: int, timeout_s: float) -> dict[str, Any]:
    """Hand the jobs to the worker, numbered from one, and return its answer."""
    with tempfile.TemporaryDirectory() as folder:
        log, answer = Path(folder, "jobs.swf"), Path(folder, "result.json")
        save_trace(replace(trace, job_id=None), log)
        run_worker(python, "accasim_worker.py", str(log), str(num_procs), str(answer), timeout_s=timeout_s)
        result: dict[str, Any] = json.loads(answer.read_text())
        return result
