"""The recorded queues that the benchmarks replay, the classic orders on them, and what is judged."""

from __future__ import annotations

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
from peer_venv import HERE

from stretto.catalog import STRATEGIES
from stretto.core.csr import Floats
from stretto.core.trace import QueueArrays, Trace
from stretto.files.traces.load import load_trace
from stretto.queues.kernels.run import run_queue
from stretto.queues.metrics import bounded
from stretto.queues.strategies import CLASSICS
from stretto.registry import lookup

#: Logs that nothing shipped with MARS has been trained on: those that stand for unseen queues, and the generated ones.
UNSEEN = ("CTC-SP2", "OSC-Clust", "SDSC-BLUE", "Theta")
HELD_OUT = (*UNSEEN, "lublin")


def find_logs(data: Path, beginnings: str = "") -> list[Path]:
    """Return the logs under ``data/swf`` whose names begin so (comma-separated; empty = all)."""
    chosen = tuple(beginnings.split(","))
    found = [path for path in sorted((data / "swf").glob("*.swf.gz")) if path.name.startswith(chosen)]
    if not found:
        sys.exit(f"no log under {data / 'swf'} begins with {beginnings!r}; set --data or STRETTO_DATA")
    return found


def read_log(path: Path) -> tuple[Trace, int]:
    """Return the jobs that fit the recorded machine, and its processors."""
    trace = load_trace(path)
    num_procs = trace.max_procs or int(trace.num_procs.max())
    return trace.fitting(num_procs)[0], num_procs


def commit() -> str:
    """Return the commit, marked where files have changed since."""

    def git(*arguments: str) -> str:
        return subprocess.run(["git", *arguments], cwd=HERE, capture_output=True, text=True, check=False).stdout.strip()

    return git("rev-parse", "--short", "HEAD") + ("+changes" if git("status", "--porcelain") else "")


def fixed_starts(jobs: QueueArrays, num_procs: int) -> dict[str, Floats]:
    """Replay with every classic strategy."""

    def one(name: str) -> Floats:
        start = np.empty(len(jobs.submit))
        run_queue(jobs, num_procs, lookup("strategy", name, STRATEGIES).code, True, False, start)
        return start

    with ThreadPoolExecutor(2) as executor:
        return dict(zip(CLASSICS, executor.map(one, CLASSICS), strict=True))


def judge(jobs: QueueArrays, start: Floats, part: slice) -> float:
    """Return the mean bounded slowdown of some jobs."""
    return float(np.mean(bounded((start - jobs.submit)[part], jobs.run[part])))
