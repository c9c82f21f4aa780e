"""The look-ahead portfolio beside the best fixed strategy in hindsight, on windows of recorded queues.

    python benchmarks/portfolio.py                     # 16 logs, 10 windows of 5,000 jobs each
    python benchmarks/portfolio.py --logs SDSC --windows 4
    python benchmarks/portfolio.py --busy              # only windows in which the order matters

Mean bounded slowdown, EASY, user estimates. Per log, windows are drawn at random; every strategy of the portfolio is
also run alone on each window. The opponent is the strategy whose median over the windows is least, chosen
afterwards. The portfolio wins where its own median is less, and ties where it is equal: on logs whose machine is
never full, every order gives 1. ``--busy`` draws again where no two strategies differ, and says how often.

The parameters were tuned on the windows of seeds 1 to 3; the default seed is another one.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
from measure import print_table
from peer_venv import HERE
from queue_logs import commit, find_logs, read_log

from stretto.catalog import STRATEGIES
from stretto.domain.csr import Floats
from stretto.domain.trace import QueueArrays, Trace
from stretto.kernels.queue_run import run_queue
from stretto.policies.queueing.portfolio import CLASSICS, Forecast, portfolio_replay
from stretto.registry import lookup

#: Draws of a window that is busy, at most.
MAX_DRAWS = 200


def main() -> None:
    """Run all logs, print the table, keep every row."""
    options = _options()
    stamp = datetime.now(UTC).strftime("%Y%m%dT%H%M%SZ")
    common = {"date": stamp, "commit": commit(), "seed": options.seed, "busy": options.busy}
    common["spec"] = {"strategies": CLASSICS, **vars(options.forecast)}
    (HERE / "results").mkdir(exist_ok=True)
    target = HERE / "results" / f"portfolio-{stamp}.jsonl"
    lines = [("log", "windows", "best fixed", "median", "portfolio", "ratio", "per window", "s/window", "")]
    verdicts = []
    with target.open("w") as file:
        for path in find_logs(options.data, options.logs):
            rows = list(_rows(path, options))
            file.writelines(json.dumps({**row, **common}) + "\n" for row in rows)
            file.flush()
            line = _summary(path, rows)
            print(*line, flush=True)
            lines.append(line)
            verdicts.append(line[-1])
    print()
    print_table(lines)
    print(f"\n{verdicts.count('win')} wins, {verdicts.count('tie')} ties, {verdicts.count('loss')} losses", end="")
    print(f"; rows in {target.relative_to(HERE.parent)}")


def _rows(path: Path, options: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """Play every window of a log."""
    trace, num_procs = read_log(path)
    for start, num_drawn, window in _windows(trace, num_procs, options):
        jobs = window.arrays()
        fixed = {name: mean_slowdown(jobs, alone(jobs, num_procs, name)) for name in CLASSICS}
        begin = time.process_time()
        found = portfolio_replay(window, num_procs, forecast=options.forecast, seed=options.seed)
        yield {
            "instance": f"{path.name}:{start}:{window.num_jobs}",
            "num_procs": num_procs,
            "num_drawn": num_drawn,
            "fixed": fixed,
            "portfolio": mean_slowdown(jobs, found.start_s),
            "max_wait_s": float(np.max(found.start_s - jobs.submit)),
            "num_epochs": found.num_epochs,
            "cpu_s": time.process_time() - begin,
        }


def _windows(trace: Trace, num_procs: int, options: argparse.Namespace) -> Iterator[tuple[int, int, Trace]]:
    """Draw windows: where each begins, how many were drawn for it, and its jobs."""
    rng = np.random.default_rng(options.seed)
    last = max(trace.num_jobs - options.jobs, 0)
    for _ in range(options.windows):
        for num_drawn in range(1, MAX_DRAWS + 1):
            start = int(rng.integers(0, last + 1))
            window = trace.window(start, options.jobs)
            if not options.busy or _is_busy(window.arrays(), num_procs):
                yield start, num_drawn, window
                break


def _is_busy(jobs: QueueArrays, num_procs: int) -> bool:
    """Say whether at least two strategies differ."""
    first = mean_slowdown(jobs, alone(jobs, num_procs, CLASSICS[0]))
    return any(mean_slowdown(jobs, alone(jobs, num_procs, name)) != first for name in CLASSICS[1:])


def alone(jobs: QueueArrays, num_procs: int, strategy: str) -> Floats:
    """Return the starts under one strategy with EASY."""
    start = np.empty(len(jobs.submit))
    run_queue(jobs, num_procs, lookup("strategy", strategy, STRATEGIES).code, True, False, start)
    return start


def mean_slowdown(jobs: QueueArrays, start: Floats) -> float:
    """Return the mean bounded slowdown."""
    return float(np.mean(np.maximum(1.0, (start - jobs.submit + jobs.run) / np.maximum(jobs.run, 10.0))))


def _summary(path: Path, rows: list[dict[str, Any]]) -> tuple[str, ...]:
    """Return a line of the table; ``per window`` counts windows won and lost against the opponent."""
    log = path.name.removesuffix(".swf.gz")
    if not rows:
        return (log, "0", "-", "-", "-", "-", "-", "-", "no busy window")
    medians = {name: float(np.median([row["fixed"][name] for row in rows])) for name in CLASSICS}
    best = min(CLASSICS, key=lambda name: medians[name])
    ours = float(np.median([row["portfolio"] for row in rows]))
    better = sum(row["portfolio"] < row["fixed"][best] for row in rows)
    worse = sum(row["portfolio"] > row["fixed"][best] for row in rows)
    verdict = "win" if ours < medians[best] else "tie" if ours == medians[best] else "loss"
    cpu_s = float(np.median([row["cpu_s"] for row in rows]))
    figures = (f"{medians[best]:.4g}", f"{ours:.4g}", f"{ours / medians[best]:.3f}")
    return (log, str(len(rows)), best, *figures, f"{better}-{worse}", f"{cpu_s:.2f}", verdict)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    default = os.environ.get("STRETTO_DATA", HERE.parent.parent / "shared" / "data")
    parser.add_argument("--data", type=Path, default=Path(default), help="folder that holds swf/")
    parser.add_argument("--logs", default="", help="comma-separated beginnings of names; all by default")
    parser.add_argument("--windows", type=int, default=10)
    parser.add_argument("--jobs", type=int, default=5000, help="per window")
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--busy", action="store_true", help="draw again where no two strategies differ")
    for name, value in vars(Forecast()).items():
        parser.add_argument(f"--{name.replace('_', '-')}", type=type(value), default=value)
    options = parser.parse_args()
    options.forecast = Forecast(**{name: getattr(options, name) for name in vars(Forecast())})
    return options


if __name__ == "__main__":
    main()
