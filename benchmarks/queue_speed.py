"""How fast queues are replayed: whole logs, and beside AccaSim on the same jobs.

    python benchmarks/queue_speed.py
    python benchmarks/queue_speed.py --skip logs            # without the 16 logs x 6 strategies
    python benchmarks/queue_speed.py --peer-jobs 2000

Through ``stretto.queues.replay``: choosing and copying jobs counts; reading the file, compiling and figures do not.
CPU time of one core, the least of several runs, because the machine may be shared; the 16 logs are wall time of two
threads. Rows go to benchmarks/results/queue-speed.jsonl.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from against_accasim import against_accasim
from measure import print_table
from peer_venv import HERE, PeerMissing
from queue_clock import least_cpu_s
from queue_logs import commit, find_logs, read_log

from stretto.core.trace import Trace
from stretto.files.traces.load import load_trace
from stretto.queues.replay import replay

#: (log, strategy, backfill) -> jobs per second that are wanted.
BARS = {
    (log, strategy, backfill): bar
    for log in ("SDSC-SP2", "HPC2N")
    for strategy, backfill, bar in (
        ("fcfs", "none", 8e6),
        ("fcfs", "easy", 3e6),
        ("sjf", "easy", 1e6),
        ("wfp3", "easy", 1e6),
        ("unicep", "easy", 1e6),
        ("expansion", "easy", 1e6),
        ("f1", "easy", 1e6),
        ("saf", "easy", 1e6),
        ("fcfs", "conservative", 1e5),
    )
}
RICC_S = 1.6
SIX = ("fcfs", "sjf", "saf", "wfp3", "unicep", "f1")
ALL_LOGS_S = 30.0
PARTS = ("jobs", "ricc", "logs", "accasim")


def main() -> None:
    """Run the parts, print the tables, keep every row."""
    options = _options()
    rows: list[dict[str, Any]] = []
    lines = [("log", "strategy", "backfill", "jobs", "seconds", "jobs/s", "bar", "")]
    if "jobs" not in options.skip:
        _jobs(options.data, rows, lines)
    if "ricc" not in options.skip:
        _ricc(options.data, rows, lines)
    if "logs" not in options.skip:
        _logs(options.data, rows, lines)
    print_table(lines)
    if "accasim" not in options.skip:
        trace, num_procs = read_log(find_logs(options.data, "SDSC-SP2")[0])
        try:
            rows += against_accasim(trace.window(0, options.peer_jobs), num_procs, options.timeout)
        except PeerMissing as reason:
            print(f"\nAccaSim: left out, {reason}")
    _record(rows)


def _log(data: Path, name: str) -> tuple[Trace, int]:
    """Return a log as recorded, and its processors; ``replay`` leaves out the jobs that never ran."""
    trace = load_trace(find_logs(data, name)[0])
    return trace, trace.max_procs or int(trace.num_procs.max())


def _jobs(data: Path, rows: list[dict[str, Any]], lines: list[tuple[str, ...]]) -> None:
    """Time one strategy after the other on whole logs."""
    for log in dict.fromkeys(log for log, _, _ in BARS):
        trace, num_procs = _log(data, log)
        for (name, strategy, backfill), bar in BARS.items():
            if name == log:
                num_jobs, seconds = _time(trace, num_procs, strategy, backfill, rows)
                verdict = "reached" if num_jobs / seconds >= bar else "MISSED"
                lines.append(_line(log, strategy, backfill, num_jobs, seconds, f"{bar:,.0f}", verdict))


def _time(trace: Trace, num_procs: int, strategy: str, backfill: str, rows: list[dict[str, Any]]) -> tuple[int, float]:
    """Return the jobs that were replayed and the least CPU seconds; the first replay compiles."""
    num_jobs = replay(trace, num_procs, strategy=strategy, backfill=backfill).trace.num_jobs
    seconds = least_cpu_s(lambda: replay(trace, num_procs, strategy=strategy, backfill=backfill))
    spec = {"strategy": strategy, "backfill": backfill}
    rows.append({"spec": spec, "instance": trace.name, "num_jobs": num_jobs, "cpu_s": seconds})
    return num_jobs, seconds


def _ricc(data: Path, rows: list[dict[str, Any]], lines: list[tuple[str, ...]]) -> None:
    """Time EASY on the log with the longest queues."""
    trace, num_procs = _log(data, "RICC")
    num_jobs, seconds = _time(trace, num_procs, "fcfs", "easy", rows)
    verdict = "reached" if seconds <= RICC_S else "MISSED"
    lines.append(_line("RICC", "fcfs", "easy", num_jobs, seconds, f"{RICC_S:g} s", verdict))


def _logs(data: Path, rows: list[dict[str, Any]], lines: list[tuple[str, ...]]) -> None:
    """Replay every log with six strategies on two threads; the compiled loops run side by side."""
    logs = [read_log(path) for path in find_logs(data)]
    for strategy in SIX:
        replay(logs[0][0].window(0, 10), logs[0][1], strategy=strategy)
    # The long ones first, so that no thread is left alone with one of them.
    logs.sort(key=lambda log: log[0].num_jobs, reverse=True)
    work = [(trace, num_procs, strategy) for strategy in reversed(SIX) for trace, num_procs in logs]
    begin = time.perf_counter()
    with ThreadPoolExecutor(2) as pool:
        num_jobs = sum(pool.map(_replayed, work))
    seconds = time.perf_counter() - begin
    rows.append({"spec": {"strategies": SIX, "backfill": "easy"}, "num_logs": len(logs), "wall_s": seconds})
    verdict = "reached" if seconds <= ALL_LOGS_S else "MISSED"
    lines.append(_line(f"{len(logs)} logs", "six", "easy", num_jobs, seconds, f"{ALL_LOGS_S:g} s", verdict))


def _replayed(work: tuple[Trace, int, str]) -> int:
    trace, num_procs, strategy = work
    return replay(trace, num_procs, strategy=strategy).trace.num_jobs


def _line(log: str, strategy: str, backfill: str, num_jobs: int, seconds: float, bar: str, verdict: str) -> Any:
    rate = f"{num_jobs / seconds:,.0f}"
    return (log, strategy, backfill, f"{num_jobs:,}", f"{seconds:.4f}", rate, bar, verdict)


def _record(rows: list[dict[str, Any]]) -> None:
    """Append the rows, each with the commit that made it."""
    common = {"date": datetime.now(UTC).strftime("%Y%m%dT%H%M%SZ"), "commit": commit()}
    folder = HERE / "results"
    folder.mkdir(exist_ok=True)
    target = folder / "queue-speed.jsonl"
    with target.open("a") as file:
        file.writelines(json.dumps({**row, **common}) + "\n" for row in rows)
    print(f"\n{len(rows)} rows in {target.relative_to(HERE.parent)}")


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    data = Path(os.environ.get("STRETTO_DATA", HERE.parent.parent / "shared" / "data"))
    parser.add_argument("--data", type=Path, default=data, help="folder with the logs in swf/")
    parser.add_argument("--skip", action="append", default=[], choices=PARTS, help="a part to leave out")
    parser.add_argument("--peer-jobs", type=int, default=3000, help="jobs that AccaSim replays")
    parser.add_argument("--timeout", type=float, default=600.0, help="seconds that AccaSim may take")
    return parser.parse_args()


if __name__ == "__main__":
    main()
