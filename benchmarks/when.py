"""How well starts are predicted when jobs are submitted, on recorded logs, with nothing but what was known then.

    python benchmarks/when.py                                    # every log, 2,000 jobs of each
    python benchmarks/when.py --logs CTC,SDSC-SP2 --jobs 500
    python benchmarks/when.py --strategy sjf --logs CTC          # another order than fcfs, with EASY
    python benchmarks/when.py --choose                           # constants, chosen without the judged log
    python benchmarks/when.py --part speed                       # time per answer with 1,000 waiting jobs

Jobs start as FCFS with EASY lets them. Judged are jobs that waited more than a minute, spread over the whole log; each
is predicted at its submission, and its outcome is learned from once it is known. Errors are medians of absolute errors
over that of the replay by estimates, which is what ``squeue --start`` does. Left out, one at a time: futures (the
replay by estimates is believed), regression, the learned size of errors, and the tracking of intervals. Machines:
as recorded; where the log does not say, the file of machines beside it or the most that ran at once; and where fewer
than 500 jobs wait, in steps of a tenth so much smaller that 500 do. Rows go to benchmarks/results/when.jsonl.
"""

from __future__ import annotations

import argparse
import heapq
import json
import os
import time
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path

import numpy as np
from peer_venv import HERE
from queue_logs import commit, find_logs

from stretto.catalog import STRATEGIES
from stretto.core.csr import Floats
from stretto.core.trace import QueueArrays, Trace
from stretto.files.traces.load import load_trace
from stretto.queues.kernels.run import run_queue
from stretto.queues.when.futures import futures_of
from stretto.queues.when.known import FutureRules, KnownQueue
from stretto.queues.when.learner import Outlook, StartLearner, WhenParts
from stretto.queues.when.parameters import WHEN_PARAMETERS, WhenParameters
from stretto.queues.when.predict import LEAST_WAIT_S, StartPredictor
from stretto.registry import lookup

VARIANTS = {
    "all": WhenParts(),
    "no regression": WhenParts(regression=False),
    "no futures": WhenParts(futures=False, regression=False),
    "no size": WhenParts(size=False),
    "no tracking": WhenParts(conformal=False),
}
LEAST_WAITING, LEAST_DAYS = 500, 10
#: What users ask for below a day, in minutes.
ROUND_MIN = (5, 10, 15, 20, 30, 60, 120, 180, 240, 300, 360, 480, 600, 720, 1080)
GRID = {"step": (0.05, 0.1, 0.2), "recent_scores": (300, 600), "burst_power": (0.0, 0.5)}


@dataclass
class Asked:
    """The questions of one log and their answers."""

    log: str
    outlooks: list[Outlook]
    start_s: Floats
    num_procs: int
    recorded_procs: int
    ms_per_answer: float

    @property
    def wait_s(self) -> Floats:
        return self.start_s - np.array([one.moment_s for one in self.outlooks])


def recorded_procs(path: Path, trace: Trace) -> int:
    """Return the processors of the machine."""
    beside = path.with_name(path.name.split(".")[0] + ".machines.txt")
    if trace.max_procs:
        return trace.max_procs
    if beside.exists():
        return sum(int(line.split()[2]) * int(line.split()[3]) for line in beside.read_text().splitlines())
    wait = np.zeros(trace.num_jobs) if trace.wait_s is None else np.nan_to_num(trace.wait_s)
    start = trace.submit_s + wait
    moment, change = np.concatenate([start + trace.run_s, start]), np.concatenate([-trace.num_procs, trace.num_procs])
    return int(np.cumsum(change[np.lexsort((change, moment))]).max())


def starts_of(jobs: QueueArrays, num_procs: int, code: int) -> Floats:
    """Return the starts of a replay with EASY."""
    start = np.empty(len(jobs.submit))
    run_queue(jobs, num_procs, code, True, False, start)
    return start


def with_estimates(trace: Trace, seed: int = 0) -> Trace:
    """Return a log whose users ask for round times, several times what their jobs run.

    Run time over estimate is uniform (Mu'alem and Feitelson 2001), then the estimate is the next of the few round
    values that users ask for (Tsafrir, Etsion and Feitelson 2005).
    """
    rng = np.random.default_rng(seed)
    wanted = trace.run_s / rng.uniform(0.02, 1.0, trace.num_jobs)
    longer = np.arange(1, 1 + int(wanted.max() // 86400) + 1) * 86400.0
    values = np.concatenate([60.0 * np.array(ROUND_MIN), longer])
    return replace(trace, estimate_s=values[np.searchsorted(values, wanted)])


def is_enough(jobs: QueueArrays, start: Floats) -> bool:
    """Say whether enough jobs wait, and not all of them in a few days."""
    waited = jobs.submit[start - jobs.submit > LEAST_WAIT_S]
    days = len(np.unique(waited // 86400.0))
    return len(waited) >= LEAST_WAITING and days >= min(LEAST_DAYS, (jobs.submit[-1] - jobs.submit[0]) / 2 / 86400.0)


def prepared(path: Path, code: int, generated: bool = False) -> tuple[KnownQueue, int]:
    """Return a log as it was replayed, on a machine on which enough jobs wait, and the recorded processors."""
    whole = load_trace(path)
    if generated:
        whole = with_estimates(whole)
    recorded = num_procs = recorded_procs(path, whole)
    while True:
        trace = whole.fitting(num_procs)[0]
        jobs = trace.arrays()
        start = starts_of(jobs, num_procs, code)
        if is_enough(jobs, start) or num_procs < 10:
            return KnownQueue(trace, jobs, num_procs, start, start + jobs.run, FutureRules(code)), recorded
        num_procs = int(0.9 * num_procs)


def ask(path: Path, code: int, num_jobs: int) -> Asked:
    """Play the futures of a log at the submission of jobs that will wait."""
    queue, recorded = prepared(path, code)
    rows = np.flatnonzero(queue.start_s - queue.jobs.submit > LEAST_WAIT_S)
    if len(rows) > num_jobs:
        rows = rows[np.linspace(0, len(rows) - 1, num_jobs).astype(np.int64)]
    futures, outlooks, spent = futures_of(queue), [], 0.0
    for row in rows:
        begin = time.process_time()
        outlooks += futures.outlooks(float(queue.jobs.submit[row]), np.array([row]))
        spent += time.process_time() - begin
    return Asked(path.name, outlooks, queue.start_s[rows], queue.num_procs, recorded, 1e3 * spent / len(rows))


def judge(asked: Asked, parts: WhenParts, p: WhenParameters = WHEN_PARAMETERS) -> dict[str, object]:
    """Learn along a log and return errors, coverage and widths."""
    learner, pending = StartLearner(0.9, parts, p), []
    low, likely, high = (np.empty(len(asked.outlooks)) for _ in range(3))
    wait = asked.wait_s
    for i, outlook in enumerate(asked.outlooks):
        while pending and pending[0][0] <= outlook.moment_s:
            _, j, said = heapq.heappop(pending)
            learner.learn(said, float(wait[j]))
        said = learner.predict(outlook)
        low[i], likely[i], high[i] = said.low_s, said.likely_s, said.high_s
        heapq.heappush(pending, (float(asked.start_s[i]), i, said))
    inside = (wait >= low - 1e-6) & (wait <= high + 1e-6)
    by_estimates = np.array([one.by_estimates_s for one in asked.outlooks])
    medians = np.array([np.median(one.futures_s) for one in asked.outlooks])
    raw = np.array([np.quantile(one.futures_s, (0.05, 0.95)) for one in asked.outlooks])
    log = [np.log(p.offset_s + part) for part in (low, high, wait)]
    missed = np.maximum(0.0, log[0] - log[2]) + np.maximum(0.0, log[2] - log[1])
    return {
        "by_estimates_min": float(np.median(np.abs(by_estimates - wait))) / 60.0,
        "futures_min": float(np.median(np.abs(medians - wait))) / 60.0,
        "likely_min": float(np.median(np.abs(likely - wait))) / 60.0,
        "raw_cover": float(np.mean((wait >= raw[:, 0]) & (wait <= raw[:, 1]))),
        "cover": float(inside.mean()),
        "thirds": [float(part.mean()) for part in np.array_split(inside, 3)],
        "width_min": float(np.median(high - low)) / 60.0,
        "interval_score": float(np.mean(log[1] - log[0] + 2.0 / 0.1 * missed)),
    }


def is_covered(row: dict[str, object]) -> bool:
    """Say whether a log has the share inside that it should, as a whole and in each third."""
    return 0.88 <= row["cover"] <= 0.92 and all(0.85 <= third <= 0.95 for third in row["thirds"])


def show(asked: Asked, rows: dict[str, dict[str, object]]) -> None:
    """Print one log."""
    row = rows["all"]
    base = max(row["by_estimates_min"], 1e-9)
    ratios = [row["futures_min"], *(rows[name]["likely_min"] for name in ("all", "no regression"))]
    cells = "".join(f"{value / base:10.2f}" if row["by_estimates_min"] > 0.05 else f"{'exact':>10}" for value in ratios)
    thirds = "/".join(f"{share:.2f}" for share in row["thirds"])
    others = "".join(f"{rows[name]['interval_score']:9.2f}" for name in VARIANTS)
    mark = "" if is_covered(row) else " *"
    print(
        f"{asked.log[:12]:13}{len(asked.outlooks):6}{asked.num_procs / asked.recorded_procs:7.2f}"
        f"{row['by_estimates_min']:9.1f}{cells}{row['raw_cover']:7.2f}{row['cover']:7.3f} {thirds}{mark:3}"
        f"{row['width_min']:9.1f}{others}{asked.ms_per_answer:8.1f}",
        flush=True,
    )


def compare(options: argparse.Namespace) -> list[Asked]:
    """Measure every log, with all parts and without each."""
    code = lookup("strategy", options.strategy, STRATEGIES).code
    scores = "".join(f"{name.removeprefix('no '):>9.8}" for name in VARIANTS)
    print(
        f"{'log':13}{'jobs':>6}{'mach.':>7}{'est/min':>9}{'futures':>10}{'answer':>10}{'no regr.':>10}{'raw':>7}"
        f"{'cover':>7} {'thirds':14}{'width':>9}{scores}{'ms':>8}"
    )
    found = []
    Path(HERE, "results").mkdir(exist_ok=True)
    with Path(HERE, "results", "when.jsonl").open("a") as out:
        for path in find_logs(Path(options.data), options.logs):
            asked = ask(path, code, options.jobs)
            rows = {name: judge(asked, parts) for name, parts in VARIANTS.items()}
            show(asked, rows)
            base = {"log": asked.log, "strategy": options.strategy, "jobs": len(asked.outlooks), "commit": commit()}
            procs = {"num_procs": asked.num_procs, "recorded_procs": asked.recorded_procs}
            out.write(json.dumps({**base, **procs, "ms_per_answer": asked.ms_per_answer, "rows": rows}) + "\n")
            out.flush()
            found.append(asked)
    return found


def choose(found: list[Asked]) -> None:
    """Choose constants for each log by all the others, and print what they give there."""
    settings = [dict(zip(GRID, values, strict=True)) for values in product(*GRID.values())]
    rows = [[judge(asked, WhenParts(), replace(WHEN_PARAMETERS, **some)) for asked in found] for some in settings]
    score = np.array([[row["interval_score"] for row in of_setting] for of_setting in rows])
    score /= score.mean(0)
    print(f"\n{'log':13}{'chosen without it':56}{'cover':>7} thirds")
    for k, asked in enumerate(found):
        best = int(np.argmin(np.delete(score, k, axis=1).mean(1)))
        row = rows[best][k]
        thirds = "/".join(f"{share:.2f}" for share in row["thirds"])
        print(f"{asked.log[:12]:13}{str(settings[best])[:54]:56}{row['cover']:7.3f} {thirds}")


def speed(options: argparse.Namespace) -> None:
    """Print the time of an answer with a thousand waiting jobs, the asked one being the last."""
    rng = np.random.default_rng(0)
    n, num_procs = 4000, 1024
    submit = np.sort(rng.random(n)) * 40 * 86400.0
    submit[-1000:] = submit[-1000] + np.arange(1000.0)
    estimate = np.exp(rng.normal(9.0, 1.2, n)).clip(60, 3 * 86400)
    run = estimate * rng.random(n).clip(0.01)
    trace = Trace.of(submit, run, 2 ** rng.integers(0, 8, n), estimate, user=rng.integers(0, 40, n))
    jobs = trace.arrays()
    start = starts_of(jobs, num_procs, 0)
    for name, rules, slack in (
        ("fcfs + easy", FutureRules(0), None),
        ("sjf + easy", FutureRules(1), None),
        ("expansion + easy", FutureRules(20), None),
        ("fcfs + promises (24h+4e)", FutureRules(0, promises=True), 86400.0 + 4 * estimate),
    ):
        queue = KnownQueue(trace, jobs, num_procs, start, start + run, rules, slack_s=slack)
        predictor = StartPredictor(queue)
        now = float(submit[-1])
        num_waiting = len(queue.waiting_at(now))
        predictor.ask(now - 1.0, [n - 2])
        begin = time.process_time()
        predictor.ask(now, [n - 1])
        print(f"{name:28}{num_waiting:6,} waiting {time.process_time() - begin:8.3f} s of CPU", flush=True)


def main() -> None:
    """Read the options and measure."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--part", choices=("compare", "speed"), default="compare")
    parser.add_argument("--logs", default="", help="beginnings of names, separated by commas")
    parser.add_argument("--jobs", type=int, default=2000, help="questions per log")
    parser.add_argument("--strategy", default="fcfs")
    parser.add_argument("--choose", action="store_true", help="choose constants for each log by the others")
    default = os.environ.get("STRETTO_DATA", HERE.parent.parent / "shared" / "data")
    parser.add_argument("--data", type=Path, default=default)
    options = parser.parse_args()
    if options.part == "speed":
        speed(options)
        return
    found = compare(options)
    if options.choose:
        choose(found)


if __name__ == "__main__":
    main()
