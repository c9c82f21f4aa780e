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
from dataclasses import dataclass, fields, replace
from itertools import product
from pathlib import Path

import numpy as np
from peer_venv import HERE
from queue_logs import commit, find_logs

from stretto.catalog import STRATEGIES
from stretto.core.csr import Floats, Ints
from stretto.core.site import Partition, Site, SiteNode
from stretto.core.trace import QueueArrays, Trace
from stretto.files.traces.load import load_trace
from stretto.queues.kernels.run import run_queue
from stretto.queues.when.futures import futures_of
from stretto.queues.when.known import FutureRules, KnownQueue
from stretto.queues.when.learner import Outlook, StartLearner, WhenParts
from stretto.queues.when.parameters import WHEN_PARAMETERS, WhenParameters
from stretto.queues.when.predict import LEAST_WAIT_S, StartPredictor
from stretto.queues.when.replayed import replayed_queue
from stretto.registry import lookup

VARIANTS = {
    "all": WhenParts(),
    "no regression": WhenParts(regression=False),
    "no futures": WhenParts(futures=False, regression=False),
    "no spread": WhenParts(spread=False),
    "no prior": WhenParts(prior=False),
}
LEAST_WAITING, LEAST_DAYS = 500, 10
#: Orders that change with time.
DYNAMIC = ("expansion", "wfp3", "unicep")
#: With fewer logs, a queue begins with the errors of the package, which may have seen it.
LEAST_LOGS = 4
#: What users ask for below a day, in minutes.
ROUND_MIN = (5, 10, 15, 20, 30, 60, 120, 180, 240, 300, 360, 480, 600, 720, 1080)
#: Submissions of one user that are no further apart than this belong to one batch.
BATCH_S = 3600.0
GRID = {"least_spread": (0.01, 0.03, 0.1), "recent_scores": (300, 600, 1500), "burst_power": (0.0, 0.5, 1.0)}


@dataclass
class Asked:
    """The questions of one log and their answers."""

    log: str
    outlooks: list[Outlook]
    start_s: Floats
    user: Ints
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


def ask(path: Path, code: int, num_jobs: int, generated: bool) -> Asked:
    """Play the futures of a log at the submission of jobs that will wait."""
    queue, recorded = prepared(path, code, generated)
    rows = np.flatnonzero(queue.start_s - queue.jobs.submit > LEAST_WAIT_S)
    if len(rows) > num_jobs:
        rows = rows[np.linspace(0, len(rows) - 1, num_jobs).astype(np.int64)]
    futures, outlooks, spent = futures_of(queue), [], 0.0
    for row in rows:
        begin = time.process_time()
        outlooks += futures.outlooks(float(queue.jobs.submit[row]), np.array([row]))
        spent += time.process_time() - begin
    user = queue.jobs.user[rows].astype(np.int32)
    return Asked(path.name, outlooks, queue.start_s[rows], user, queue.num_procs, recorded, 1e3 * spent / len(rows))


def kept(path: Path, code: int, options: argparse.Namespace) -> Asked:
    """Return the questions of a log, from the folder of an earlier run where there is one."""
    if options.keep is None:
        return ask(path, code, options.jobs, options.generated)
    words = (path.name.split(".")[0], options.strategy, *(["generated"] if options.generated else []))
    file = Path(options.keep, "-".join(words) + ".npz")
    if not file.exists():
        asked = ask(path, code, options.jobs, options.generated)
        columns = {
            field.name: np.array([getattr(one, field.name) for one in asked.outlooks]) for field in fields(Outlook)
        }
        rest = {field.name: getattr(asked, field.name) for field in fields(Asked) if field.name != "outlooks"}
        file.parent.mkdir(exist_ok=True, parents=True)
        np.savez(file, **columns, **rest)
        return asked
    with np.load(file) as found:
        rows = zip(*(found[field.name] for field in fields(Outlook)), strict=True)
        outlooks = [Outlook(*(value if value.ndim else float(value) for value in row)) for row in rows]
        rest = {name: found[name] for name in ("start_s", "user")}
        counts = {name: found[name].item() for name in ("log", "num_procs", "recorded_procs", "ms_per_answer")}
    return Asked(outlooks=outlooks, **rest, **counts)


@dataclass
class Said:
    """What a learner said along a log, and the errors that it then knew."""

    low_s: Floats
    likely_s: Floats
    high_s: Floats
    scores: Floats


def learn_along(asked: Asked, parts: WhenParts, p: WhenParameters) -> Said:
    """Predict every question of a log, and learn from each outcome once it is known."""
    learner, pending = StartLearner(0.9, parts, p), []
    low, likely, high = (np.empty(len(asked.outlooks)) for _ in range(3))
    wait, scores = asked.wait_s, []
    for i, outlook in enumerate(asked.outlooks):
        while pending and pending[0][0] <= outlook.moment_s:
            _, j, said = heapq.heappop(pending)
            learner.learn(said, float(wait[j]))
            scores.append(learner.scores[-1][0])
        said = learner.predict(outlook)
        low[i], likely[i], high[i] = said.low_s, said.likely_s, said.high_s
        heapq.heappush(pending, (float(asked.start_s[i]), i, said))
    return Said(low, likely, high, np.array(scores))


def prior_of(others: list[Floats]) -> tuple[float, ...]:
    """Return twenty quantiles of the errors of several logs, all logs alike."""
    shares = (np.arange(200) + 0.5) / 200
    pooled = np.concatenate([np.quantile(scores, shares) for scores in others])
    return tuple(float(value) for value in np.quantile(pooled, (np.arange(20) + 0.5) / 20).round(2))


def without_each(found: list[Asked], p: WhenParameters) -> list[WhenParameters]:
    """Return the parameters for each log, with the errors of the other logs to begin with."""
    scores = [learn_along(asked, WhenParts(), p).scores for asked in found]
    names = [asked.log.split("_")[0] for asked in found]  # the generated logs are of one kind
    chosen = []
    for name in names:
        others = [part for other, part in zip(names, scores, strict=True) if other != name]
        chosen.append(replace(p, prior=prior_of(others)) if len(set(names)) > LEAST_LOGS else p)
    if len(set(names)) > LEAST_LOGS:
        print(f"errors of all these logs to begin with: {prior_of(scores)}")
    return chosen


def batches(asked: Asked) -> Ints:
    """Return the batch of each question."""
    last: dict[int, tuple[float, int]] = {}
    found = np.zeros(len(asked.outlooks), np.int32)
    for i, (user, outlook) in enumerate(zip(asked.user.tolist(), asked.outlooks, strict=True)):
        then, number = last.get(user, (-np.inf, -1))
        found[i] = number if outlook.moment_s - then <= BATCH_S else found[:i].max(initial=-1) + 1
        last[user] = (outlook.moment_s, int(found[i]))
    return found


def by_batches(inside: np.ndarray, batch: Ints, draws: int = 1000) -> tuple[float, float]:
    """Return the 95 % interval of the share inside, by drawing whole batches anew."""
    rng = np.random.default_rng(0)
    count, hits = np.bincount(batch), np.bincount(batch, inside)
    drawn = rng.integers(0, len(count), (draws, len(count)))
    return tuple(float(one) for one in np.quantile(hits[drawn].sum(1) / count[drawn].sum(1), (0.025, 0.975)))


def judge(asked: Asked, parts: WhenParts, p: WhenParameters) -> dict[str, object]:
    """Learn along a log and return errors, coverage and widths."""
    said, wait = learn_along(asked, parts, p), asked.wait_s
    low, high = said.low_s, said.high_s
    inside = (wait >= low - 1e-6) & (wait <= high + 1e-6)
    by_estimates = np.array([one.by_estimates_s for one in asked.outlooks])
    medians = np.array([np.median(one.futures_s) for one in asked.outlooks])
    raw = np.array([np.quantile(one.futures_s, (0.05, 0.95)) for one in asked.outlooks])
    log = [np.log(p.offset_s + part) for part in (low, high, wait)]
    missed = np.maximum(0.0, log[0] - log[2]) + np.maximum(0.0, log[2] - log[1])
    batch = batches(asked)
    return {
        "by_estimates_min": float(np.median(np.abs(by_estimates - wait))) / 60.0,
        "futures_min": float(np.median(np.abs(medians - wait))) / 60.0,
        "likely_min": float(np.median(np.abs(said.likely_s - wait))) / 60.0,
        "exact": float(np.mean(np.abs(by_estimates - wait) < 1.0)),
        "raw_cover": float(np.mean((wait >= raw[:, 0]) & (wait <= raw[:, 1]))),
        "cover": float(inside.mean()),
        "cover_95": by_batches(inside, batch),
        "thirds": [float(part.mean()) for part in np.array_split(inside, 3)],
        "first": [float(inside[:count].mean()) for count in (30, 100)],
        "num_batches": int(batch.max()) + 1,
        "width_min": float(np.median(high - low)) / 60.0,
        "interval_score": float(np.mean(log[1] - log[0] + 2.0 / 0.1 * missed)),
    }


def is_covered(row: dict[str, object]) -> bool:
    """Say whether a log has the share inside that it should, as a whole and in each third."""
    return 0.88 <= row["cover"] <= 0.92 and all(0.85 <= third <= 0.95 for third in row["thirds"])


def show(asked: Asked, rows: dict[str, dict[str, object]]) -> None:
    """Print one log."""
    row = rows["all"]
    base = row["by_estimates_min"]
    ratios = [row["futures_min"], *(rows[name]["likely_min"] for name in ("all", "no regression"))]
    cells = "".join(f"{value / base:8.2f}" if base > 0.05 else f"{'exact':>8}" for value in ratios)
    thirds = "/".join(f"{share:.2f}" for share in row["thirds"])
    around = "-".join(f"{share:.2f}" for share in row["cover_95"])
    first = "/".join(f"{share:.2f}" for share in row["first"])
    others = "".join(f"{rows[name]['interval_score']:8.2f}" for name in VARIANTS)
    mark = "" if is_covered(row) else " *"
    print(
        f"{asked.log[:12]:13}{len(asked.outlooks):5}{row['num_batches']:6}{asked.num_procs / asked.recorded_procs:6.2f}"
        f"{base:8.1f}{cells}{row['exact']:6.2f}{row['raw_cover']:5.2f}{row['cover']:6.3f} {around} {thirds}{mark:3}"
        f"{first}{others}{asked.ms_per_answer:7.1f}",
        flush=True,
    )


def compare(options: argparse.Namespace) -> list[Asked]:
    """Measure every log, with all parts and without each."""
    code = lookup("strategy", options.strategy, STRATEGIES).code
    found = [kept(path, code, options) for path in find_logs(Path(options.data), options.logs)]
    scores = "".join(f"{name.removeprefix('no '):>8.7}" for name in VARIANTS)
    print(
        f"{'log':13}{'jobs':>5}{'batch':>6}{'mach.':>6}{'est/min':>8}{'futures':>8}{'answer':>8}{'no regr':>8}"
        f"{'exact':>6}{'raw':>5}{'cover':>6} {'95 %':9} {'thirds':17}{'30/100':9}{scores}{'ms':>7}"
    )
    Path(HERE, "results").mkdir(exist_ok=True)
    with Path(HERE, "results", "when.jsonl").open("a") as out:
        for asked, p in zip(found, without_each(found, WHEN_PARAMETERS), strict=True):
            rows = {name: judge(asked, parts, p) for name, parts in VARIANTS.items()}
            show(asked, rows)
            base = {"log": asked.log, "strategy": options.strategy, "jobs": len(asked.outlooks), "commit": commit()}
            how = {"generated": options.generated, "num_procs": asked.num_procs, "recorded_procs": asked.recorded_procs}
            out.write(json.dumps({**base, **how, "ms_per_answer": asked.ms_per_answer, "rows": rows}) + "\n")
            out.flush()
    return found


def choose(found: list[Asked]) -> None:
    """Choose constants for each log by all the others, and print what they give there."""
    settings = [dict(zip(GRID, values, strict=True)) for values in product(*GRID.values())]
    rows = []
    for some in settings:
        chosen = without_each(found, replace(WHEN_PARAMETERS, **some))
        rows.append([judge(asked, WhenParts(), p) for asked, p in zip(found, chosen, strict=True)])
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
        *((f"{name} + easy", FutureRules(lookup("strategy", name, STRATEGIES).code), None) for name in DYNAMIC),
        ("fcfs + promises (24h+4e)", FutureRules(0, promises=True), 86400.0 + 4 * estimate),
    ):
        speed_of(name, KnownQueue(trace, jobs, num_procs, start, start + run, rules, slack_s=slack))
    names = tuple(f"n{node}" for node in range(64))
    parts = (Partition("wide", names[:48], is_default=True), Partition("short", names[32:]))
    site = Site("speed", tuple(SiteNode(name, 16) for name in names), parts)
    of_part = replace(
        trace, partition=rng.integers(0, 2, n).astype(np.int32), meta={"partition_names": ["wide", "short"]}
    )
    speed_of("fcfs + easy on 64 nodes", replayed_queue(of_part, site).queue)


def speed_of(name: str, queue: KnownQueue) -> None:
    """Print the time of the last of three answers; the first ones compile."""
    predictor, now = StartPredictor(queue), float(queue.jobs.submit[-1])
    for back in (2, 1):
        predictor.ask(now - back, [queue.num_jobs - 1 - back])
    begin = time.process_time()
    answer = predictor.ask(now, [queue.num_jobs - 1])[0]
    took = time.process_time() - begin
    num_waiting = len(queue.waiting_at(now))
    print(f"{name:28}{num_waiting:6,} waiting {answer.num_futures:3} futures {took:8.3f} s of CPU", flush=True)


def main() -> None:
    """Read the options and measure."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--part", choices=("compare", "speed"), default="compare")
    parser.add_argument("--logs", default="", help="beginnings of names, separated by commas")
    parser.add_argument("--jobs", type=int, default=2000, help="questions per log")
    parser.add_argument("--strategy", default="fcfs")
    parser.add_argument("--generated", action="store_true", help="estimates are generated, not those of the log")
    parser.add_argument("--keep", type=Path, help="a folder for played futures, to judge them again without playing")
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
