"""How good forecasts of run times are, at submission, on recorded logs that nothing was tuned on while they ran.

    python benchmarks/forecasts.py
    python benchmarks/forecasts.py --logs CTC,SDSC-SP2 --max-jobs 20000

Jobs end as FCFS with EASY lets them. All figures are of log(run / estimate), run times of at least ten seconds: the
pinball loss (mean over the quantiles of a forecast; for a single number, that number at all levels), the median
absolute error of the middle, and how many run times lie in the 90 % and 50 % intervals, over each third of a log.
Beside the forecasts: the user's estimate, the mean of the user's last two run times, and the means by kind of the
portfolio. Rows go to benchmarks/results/forecasts.jsonl.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from pathlib import Path

import numpy as np
from peer_venv import HERE
from queue_logs import commit, find_logs, read_log

from stretto.core.csr import Floats
from stretto.core.trace import QueueArrays, Trace
from stretto.queues.forecasts.kernels.online import LEAST_S, NUM_QUANTILES, QUANTILES, forecast_all
from stretto.queues.forecasts.state import new_forecasts
from stretto.queues.kernels import keys
from stretto.queues.kernels.forecast import believe, new_past, remember
from stretto.queues.kernels.run import run_queue
from stretto.queues.portfolio import kinds_of

LEVELS = np.array(QUANTILES)


def pinball(actual: Floats, forecast: Floats) -> float:
    """Return the mean loss over all quantiles; ``forecast`` has a column per quantile."""
    missed = actual[:, None] - forecast
    return float(np.maximum(LEVELS * missed, (LEVELS - 1) * missed).mean())


def by_thirds(inside: np.ndarray) -> list[float]:
    """Return the share of each third of a log."""
    return [float(part.mean()) for part in np.array_split(inside, 3)]


def last_two(jobs: QueueArrays, start: Floats) -> Floats:
    """Return the mean of the user's last two ended jobs, at most the estimate."""
    end = start + jobs.run
    found, past = jobs.estimate.copy(), {}
    ended = iter([*np.argsort(end, kind="stable").tolist(), -1])
    job = next(ended)
    for now in range(len(end)):
        while job >= 0 and end[job] <= jobs.submit[now]:
            past[jobs.user[job]] = (*past.get(jobs.user[job], ()), float(jobs.run[job]))[-2:]
            job = next(ended)
        recent = past.get(jobs.user[now], ())
        if len(recent) == 2:
            found[now] = min(found[now], sum(recent) / 2)
    return found


def older_means(jobs: QueueArrays, start: Floats) -> Floats:
    """Return what the portfolio believes: discounted means by kind."""
    kinds = kinds_of(jobs)
    past, end = new_past(int(kinds.max()) + 1), start + jobs.run
    found = np.empty(len(end))
    by_end, done = np.argsort(end, kind="stable"), 0
    for now in range(len(end)):
        while done < len(end) and end[by_end[done]] <= jobs.submit[now]:
            job = by_end[done]
            remember(past, kinds[job], jobs.run[job], jobs.estimate[job])
            done += 1
        found[now] = believe(past, kinds[now], jobs.estimate[now])
    return found


def measure(path: Path, trace: Trace, num_procs: int) -> dict[str, object]:
    """Return the figures of one log."""
    jobs = trace.arrays()
    start = np.empty(trace.num_jobs)
    run_queue(jobs, num_procs, keys.FCFS, True, False, start)
    quantiles = np.zeros((trace.num_jobs, NUM_QUANTILES))
    forecast_all(new_forecasts(jobs, trace), jobs.submit[:2], jobs.run[:2], start[:2], quantiles[:2])
    begin = time.process_time()
    forecast_all(new_forecasts(jobs, trace), jobs.submit, jobs.run, start, quantiles)
    took = time.process_time() - begin
    log_limit = np.log(np.maximum(LEAST_S, jobs.estimate))
    actual = np.log(np.maximum(LEAST_S, jobs.run)) - log_limit
    said = {
        "estimate": jobs.estimate,
        "last two": last_two(jobs, start),
        "means": older_means(jobs, start),
    }
    found = {name: np.log(np.maximum(LEAST_S, value)) - log_limit for name, value in said.items()}
    logs = {name: np.repeat(value[:, None], NUM_QUANTILES, axis=1) for name, value in found.items()}
    logs = {"forecast": np.log(quantiles) - log_limit[:, None], **logs}
    mine, same = logs["forecast"], 1e-5
    return {
        "log": path.name,
        "jobs": trace.num_jobs,
        "cpu_s": took,
        "pinball": {name: pinball(actual, value) for name, value in logs.items()},
        "median_error": {name: float(np.median(np.abs(actual - value[:, 2]))) for name, value in logs.items()},
        "below_median": float((actual <= mine[:, 2] + same).mean()),
        "in_90": by_thirds((actual >= mine[:, 0] - same) & (actual <= mine[:, -1] + same)),
        "in_50": by_thirds((actual >= mine[:, 1] - same) & (actual <= mine[:, 3] + same)),
        "commit": commit(),
    }


def main() -> None:
    """Measure every log and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--logs", default="", help="beginnings of names, separated by commas")
    parser.add_argument("--max-jobs", type=int, default=0, help="the first jobs of each log only")
    default = os.environ.get("STRETTO_DATA", HERE.parent.parent / "shared" / "data")
    parser.add_argument("--data", type=Path, default=default)
    options = parser.parse_args()
    names = ("forecast", "estimate", "last two", "means")
    head = "".join(f"{name:>10}" for name in (*names, *names))
    print(f"{'':12}{'pinball':>40}{'median absolute error':>40}")
    print(f"{'log':12}{head}{'in 90 %, by thirds':>22}{'in 50 %, by thirds':>22}{'CPU s / 100,000':>18}")
    rows = []
    with Path(HERE, "results", "forecasts.jsonl").open("a") as out:
        for path in find_logs(Path(options.data), options.logs):
            trace, num_procs = read_log(path)
            if options.max_jobs:
                trace = trace.window(0, min(options.max_jobs, trace.num_jobs))
            row = measure(path, trace, num_procs)
            rows.append(row)
            out.write(json.dumps(row) + "\n")
            cells = [f"{row[part][name]:.3f}" for part in ("pinball", "median_error") for name in names]
            thirds = ["/".join(f"{share:.2f}" for share in row[part]) for part in ("in_90", "in_50")]
            per = f"{1e5 * row['cpu_s'] / row['jobs']:.2f}"
            print(
                f"{path.name[:10]:12}" + "".join(f"{c:>10}" for c in cells) + f"{thirds[0]:>22}{thirds[1]:>22}{per:>18}"
            )
    means = [np.mean([row[part][name] for row in rows]) for part in ("pinball", "median_error") for name in names]
    print(f"{'mean':12}" + "".join(f"{value:10.3f}" for value in means))


if __name__ == "__main__":
    main()
