"""What promises cost and give: orders inside them and without, on recorded logs with a random 1 % of jobs left out.

    python benchmarks/promises.py                                 # 3 thinnings of every log, 24h+4e
    python benchmarks/promises.py --logs CTC,SDSC-SP2 --thinnings 10 --slack 12h+2e
    python benchmarks/promises.py --part speed                    # CPU time of whole logs, and of single decisions

Figures are means over thinnings, then geometric means over logs, of ratios: the bounded slowdown over that of the best
fixed order in hindsight without promises; longest wait, 99th percentile and Jain's index over those of FCFS with EASY.
Every replay is checked: a broken promise ends the benchmark. Rows go to benchmarks/results/promises.jsonl.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
from peer_venv import HERE
from queue_logs import commit, find_logs, fixed_starts, read_log

from stretto.catalog import STRATEGIES
from stretto.core.csr import Floats
from stretto.core.trace import QueueArrays, Trace
from stretto.queues.forecasts.state import new_forecasts
from stretto.queues.kernels import keys
from stretto.queues.metrics import bounded
from stretto.queues.promises.queue import (
    BY_ESTIMATE,
    BY_LENGTH,
    MAX_TESTS,
    WEIGHTED,
    Preference,
    PromiseQueue,
    preference,
)
from stretto.queues.promises.slack import Slack
from stretto.queues.promises.validate import check_promises
from stretto.registry import lookup

#: What waits and fairness are compared with.
BASE = "fcfs + easy"
#: Fixed orders that are replayed inside promises; all classics are replayed without.
INSIDE = ("fcfs", "sjf", "saf", "f4", "wfp3", "expansion")
#: Name, code, reservation, and the quantile of the forecast that orders and reserves: 1 = 25 %, 2 = 50 %, 3 = 75 %.
BY_FORECAST = (
    ("sjf q50", keys.SHORTEST, BY_LENGTH, 2),
    ("saf q25", keys.SMALLEST_AREA, BY_LENGTH, 1),
    ("saf q50", keys.SMALLEST_AREA, BY_LENGTH, 2),
    ("saf q75", keys.SMALLEST_AREA, BY_LENGTH, 3),
    ("saf q50, reserved by estimates", keys.SMALLEST_AREA, BY_ESTIMATE, 2),
)
#: Orders by log(length) + 0.5 log(procs) - power x log(1 + wait): name, quantile, power.
WEIGHTED_ORDERS = (("weighted q25", 1, 0.3), ("weighted q50", 2, 0.3), ("weighted q25, waits count", 1, 0.6))


@dataclass(frozen=True)
class Measured:
    """The figures of one replay."""

    slowdown: float
    mean_wait_s: float
    p99_wait_s: float
    longest_wait_s: float
    jain: float


def measured(jobs: QueueArrays, start: Floats) -> Measured:
    """Return the figures of a replay."""
    wait = start - jobs.submit
    slowdown = bounded(wait, jobs.run)
    mean = np.bincount(jobs.user, weights=slowdown) / np.maximum(1, np.bincount(jobs.user))
    mean = mean[mean > 0]
    return Measured(
        float(slowdown.mean()),
        float(wait.mean()),
        float(np.percentile(wait, 99)),
        float(wait.max()),
        float(mean.sum() ** 2 / (len(mean) * np.sum(mean**2))),
    )


def inside(trace: Trace, num_procs: int, order: Preference, slack: Slack, *, true_lengths: bool = False) -> Floats:
    """Replay inside promises, check every one, and return the starts."""
    jobs = trace.arrays()
    slack_s = slack.of(jobs.estimate)
    forecasts = new_forecasts(jobs, trace) if order.quantile >= 0 else None
    queue = PromiseQueue.of(jobs, num_procs, slack_s, forecasts)
    if true_lengths:
        queue.state.length[:] = jobs.run
    queue.advance(order)
    check = check_promises(jobs, num_procs, slack_s, queue.state.start, queue.state.due)
    if not check.is_valid:
        sys.exit(f"{trace.name}: {check}")
    return queue.state.start


def orders(max_tests: int) -> dict[str, tuple[Preference, bool]]:
    """Return what is replayed inside promises, and whether it is told the true run times."""
    found = {}
    for name in INSIDE:
        found[name] = preference(lookup("strategy", name, STRATEGIES).code, max_tests=max_tests), False
    for name, code, reservation, quantile in BY_FORECAST:
        order = preference(code, by_length=True, reservation=reservation, quantile=quantile, max_tests=max_tests)
        found[name] = order, False
    for name, quantile, wait_power in WEIGHTED_ORDERS:
        order = preference(
            WEIGHTED,
            by_length=True,
            reservation=BY_LENGTH,
            quantile=quantile,
            procs_power=0.5,
            wait_power=wait_power,
            max_tests=max_tests,
        )
        found[name] = order, False
    true = preference(keys.SMALLEST_AREA, by_length=True, reservation=BY_LENGTH, max_tests=max_tests)
    found["saf by true run times"] = true, True
    return found


def measure_log(trace: Trace, num_procs: int, slack: Slack, max_tests: int, unbound: bool) -> dict[str, Measured]:
    """Replay one thinning with everything."""
    jobs = trace.arrays()
    found = {f"{name} + easy": measured(jobs, start) for name, start in fixed_starts(jobs, num_procs).items()}
    for name, (order, is_true) in orders(max_tests).items():
        start = inside(trace, num_procs, order, slack, true_lengths=is_true)
        found[f"{name} ({slack})"] = measured(jobs, start)
        if unbound and name not in INSIDE:
            start = inside(trace, num_procs, order, Slack(np.inf), true_lengths=is_true)
            found[f"{name} (inf)"] = measured(jobs, start)
    return found


def ratios(rows: list[dict[str, Measured]]) -> dict[str, list[float]]:
    """Return the ratios of the table for one log, means over its thinnings; best fixed orders are rows of their own."""
    names = list(rows[0])
    for row in rows:
        without = [row[name] for name in names if name.endswith("+ easy")]
        within = [row[name] for name in names if name.split(" (")[0] in INSIDE]
        row["best fixed"] = min(without, key=lambda one: one.slowdown)
        row["best fixed inside"] = min(within, key=lambda one: one.slowdown)
    return {
        name: [
            float(np.mean([row[name].slowdown / row["best fixed"].slowdown for row in rows])),
            float(np.mean([row[name].slowdown / row["best fixed inside"].slowdown for row in rows])),
            *(
                float(np.mean([getattr(row[name], part) / max(1e-9, getattr(row[BASE], part)) for row in rows]))
                for part in ("mean_wait_s", "p99_wait_s", "longest_wait_s", "jain")
            ),
        ]
        for name in rows[0]
    }


def compare(options: argparse.Namespace, logs: list[Path]) -> None:
    """Print the table of orders."""
    slack = Slack.parse(options.slack)
    tables = []
    with Path(HERE, "results", "promises.jsonl").open("a") as out:
        for path in logs:
            whole, num_procs = read_log(path)
            if options.max_jobs:
                whole = whole.window(0, min(options.max_jobs, whole.num_jobs))
            rows = []
            for seed in range(options.thinnings):
                kept = np.random.default_rng(seed).random(whole.num_jobs) >= 0.01
                kept[0] = True
                rows.append(measure_log(whole.keep(kept), num_procs, slack, options.max_tests, options.infinite))
            tables.append(ratios(rows))
            told = {name: [asdict(row[name]) for row in rows] for name in rows[0]}
            base = {"log": path.name, "slack": str(slack), "max_tests": options.max_tests, "commit": commit()}
            out.write(json.dumps({**base, "max_jobs": options.max_jobs, "rows": told}) + "\n")
            out.flush()
            shown = {name: round(tables[-1][name][0], 3) for name in told if "easy" not in name}
            print(f"{path.name[:20]}: {shown}", file=sys.stderr, flush=True)
    head = ("slowdown", "worst log", "of best inside", "worst log", "mean wait", "p99", "longest", "Jain")
    print(f"{'order':38}" + "".join(f"{word:>15}" for word in head))
    for name in tables[0]:
        if name.endswith("+ easy") and name != BASE:
            continue
        figures = np.array([table[name] for table in tables])
        mean = np.exp(np.log(np.maximum(1e-9, figures)).mean(0))
        shown_row = (mean[0], figures[:, 0].max(), mean[1], figures[:, 1].max(), *mean[2:])
        print(f"{name:38}" + "".join(f"{value:15.3f}" for value in shown_row))


def speed(options: argparse.Namespace, logs: list[Path]) -> None:
    """Print the CPU time of whole logs, and of decisions with a thousand waiting jobs."""
    slack = Slack.parse(options.slack)
    order = preference(keys.SMALLEST_AREA, max_tests=options.max_tests)
    print(f"{'log':24}{'jobs':>9}{'CPU s':>8}{'waiting':>9}{'p99 ms, >= 1,000 waiting':>26}")
    for path in logs:
        trace, num_procs = read_log(path)
        jobs = trace.arrays()
        PromiseQueue.of(jobs, num_procs, 0.0).advance(order, 0.0)
        begin = time.process_time()
        PromiseQueue.of(jobs, num_procs, slack.of(jobs.estimate)).advance(order)
        took = time.process_time() - begin
        queue, spent, most = PromiseQueue.of(jobs, num_procs, slack.of(jobs.estimate)), [], 0
        while queue.next_event_s() < np.inf and len(spent) < options.decisions:
            if len(queue.waiting) < 1000 and len(queue.waiting) <= most:
                queue.advance(order, queue.next_event_s())
                continue
            most = max(most, len(queue.waiting))
            begin = time.process_time()
            queue.advance(order, queue.next_event_s())
            if len(queue.waiting) >= 1000:
                spent.append(time.process_time() - begin)
        p99 = f"{1e3 * float(np.percentile(spent, 99)):.2f}" if spent else "-"
        print(f"{path.name[:23]:24}{len(jobs.submit):9,}{took:8.2f}{most:9,}{p99:>26}", flush=True)


def main() -> None:
    """Read the options and measure."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--part", choices=("compare", "speed"), default="compare")
    parser.add_argument("--logs", default="", help="beginnings of names, separated by commas")
    parser.add_argument("--thinnings", type=int, default=3)
    parser.add_argument("--slack", default="24h+4e")
    parser.add_argument("--max-tests", type=int, default=MAX_TESTS)
    parser.add_argument("--max-jobs", type=int, default=0, help="the first jobs of each log only")
    parser.add_argument("--infinite", action="store_true", help="forecast orders without promises, too")
    parser.add_argument("--decisions", type=int, default=2000)
    default = os.environ.get("STRETTO_DATA", HERE.parent.parent / "shared" / "data")
    parser.add_argument("--data", type=Path, default=default)
    options = parser.parse_args()
    logs = find_logs(Path(options.data), options.logs)
    (speed if options.part == "speed" else compare)(options, logs)


if __name__ == "__main__":
    main()
