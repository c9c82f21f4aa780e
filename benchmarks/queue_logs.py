"""The recorded queues that the benchmarks replay."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from peer_venv import HERE

from stretto.domain.trace import Trace
from stretto.formats.traces.load import load_trace


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
