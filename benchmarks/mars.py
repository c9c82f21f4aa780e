"""MARS beside the best fixed orders, inside promises and without, with weights that have not seen the judged log.

    python benchmarks/mars.py logs --thinnings 10 --max-jobs 8000           # what MARS gets, and each candidate alone
    python benchmarks/mars.py logs --slack inf                              # the same without promises
    python benchmarks/mars.py parts --thinnings 3                           # each part of MARS removed alone
    python benchmarks/mars.py curve --slack 0,6h+1e,12h+2e,24h+4e,inf       # slowdown against longest wait over slack
    python benchmarks/mars.py sequences                                     # RLScheduler's sequences
    python benchmarks/mars.py change                                        # one log, then another
    python benchmarks/mars.py speed --max-jobs 100000                       # time of a replay
    python benchmarks/mars.py latency --slack 24h+4e+1wait,inf --logs CTC   # of decisions with 1,000 waiting jobs
    python benchmarks/mars.py table                                         # tables of all rows so far

Every log is cut to its middle ``--max-jobs`` jobs, then 1 % of the jobs are left out at random, once per thinning. All
ratios are paired: the bounded slowdown over that of the best of 14 fixed orders in hindsight under EASY, and over the
best of seven fixed orders inside the same promises; waits and Jain's index over those of FCFS with EASY. Networks are
those of ``research/mars/folds.npz``: three trainings, each without a third of the logs; a log is judged by the one that
left it out. Rows go to benchmarks/results/mars.jsonl; those that are there already are not computed again.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections import defaultdict
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from ledger import record
from mars_cost import cost
from mars_portfolio import portfolio
from peer_venv import HERE
from promises import Measured, measured
from queue_logs import commit, find_logs, fixed_starts, read_log

from stretto.core.csr import Floats
from stretto.core.trace import QueueArrays, Trace
from stretto.queues.forecasts.state import new_forecasts
from stretto.queues.mars.candidates import Candidate, candidates_of, classic_candidate
from stretto.queues.mars.kernels.play import play_beside
from stretto.queues.mars.kernels.score import new_scores
from stretto.queues.mars.network import load_nets
from stretto.queues.mars.parameters import MARS_PARAMETERS
from stretto.queues.mars.policy_queue import PolicyQueue
from stretto.queues.mars.replay import mars_replay
from stretto.queues.mars.windows import starts_of
from stretto.queues.portfolio import portfolio_replay
from stretto.queues.promises.queue import PromiseQueue
from stretto.queues.promises.slack import Slack

sys.path.insert(0, str(HERE.parent))
from research.mars.folds import fold_of

from research.mars import rlscheduler

ROWS = Path(HERE, "results", "mars.jsonl")
FOLDS = Path(HERE.parent, "research", "mars", "folds.npz")
#: Fixed orders that are replayed inside promises.
INSIDE = ("fcfs", "sjf", "saf", "f2", "f4", "wfp3", "expansion")
#: RLScheduler's traces: file, and what to reach.
SEQUENCES = {
    "Lublin-1": ("lublin_256", 29.7),
    "Lublin-2": ("lublin_256_new2", 65.7),
    "SDSC-SP2": ("SDSC-SP2-1998-4.2-cln", 397.8),
    "HPC2N": ("HPC2N-2002-2.2-cln", 49.9),
}
#: Methods whose figures go into the ledger, by their names in the table.
RECORDED = {"mars": "mars", "first network alone": "first-network", "saf inside": "saf", "fcfs + easy": "fcfs-easy"}
#: What is asked of MARS.
BARS = {"slowdown": "<= 0.95", "slowdown-inside": "<= 0.85", "worst-log-inside": "<= 1.05"}
BARS |= {"p99-wait": "<= 1", "longest-wait": "<= 2.5", "jain": ">= 0.95"}
#: Logs with so little load that no job waits say nothing, and one whose header does not give its machine.
LEFT_OUT = ("CERIT",)


def main() -> None:
    """Run one benchmark."""
    options = _options()
    if options.what in ("cost", "portfolio"):
        for _, line in {"cost": cost, "portfolio": portfolio}[options.what](options):
            print("  ".join(line), flush=True)
        return
    {
        "logs": logs,
        "parts": logs,
        "curve": curve,
        "sequences": sequences,
        "change": change,
        "speed": speed,
        "latency": latency,
    }.get(options.what, lambda _: None)(options)
    if options.what in ("logs", "parts", "curve", "table"):
        table(options)


def held_out_nets(log: str, shipped: bool) -> list[Candidate]:
    """Return MARS's candidates with the networks that have not seen a log."""
    if shipped:
        return candidates_of()
    nets = [net for net in load_nets(FOLDS)[0] if net.name.startswith(f"{fold_of(log)}-")]
    return candidates_of(nets=nets, shipped=False)


def methods(log: str, part: bool, shipped: bool) -> dict[str, Any]:
    """Return what is replayed, as functions of a trace, its processors and the slack."""
    every = held_out_nets(log, shipped)
    networks = [one for one in every if one.is_network]
    trained = [one for one in every if one.is_trained]

    def chosen(candidates: list[Candidate]) -> Any:
        return lambda trace, procs, slack: mars_replay(trace, procs, candidates=candidates, slack=slack, num_threads=1)

    def alone(one: Candidate) -> Any:
        return lambda trace, procs, slack: starts_of(trace, procs, one, slack)

    found = {"mars": chosen(every)}
    if part:
        found["without trained networks"] = chosen([one for one in every if not one.is_trained])
        found["without classic orders"] = chosen([every[0], *networks])
        found["without any forecast"] = chosen([one for one in every if not one.is_network])
        found["without a choice"] = alone(trained[0])
        found["with online updates"] = lambda trace, procs, slack: mars_replay(
            trace, procs, candidates=every, slack=slack, num_threads=1, learns=True
        )
        return found
    if trained:
        found["first network alone"] = alone(trained[0])
    return found


def logs(options: argparse.Namespace) -> None:
    """Replay thinnings of logs, and keep a row for each."""
    for slack in options.slack.split(","):
        for seed in range(options.thinnings):
            for path in find_logs(options.data, options.logs):
                if not path.name.startswith(LEFT_OUT):
                    _row(options, path, seed, slack)


def _row(options: argparse.Namespace, path: Path, seed: int, text: str) -> None:
    log = path.name.split(".swf")[0]
    key = {"log": log, "seed": seed, "slack": text, "max_jobs": options.max_jobs, "what": options.what}
    key |= {"weights": "shipped" if options.shipped else "held out", "tag": options.tag}
    if any(all(row.get(name) == value for name, value in key.items()) for row in _rows()):
        return
    whole, num_procs = read_log(path)
    count = min(options.max_jobs or whole.num_jobs, whole.num_jobs)
    middle = whole.window((whole.num_jobs - count) // 2, count)
    kept = np.random.default_rng(seed).random(count) >= 0.01
    kept[0] = True
    trace = middle.keep(kept)
    jobs = trace.arrays()
    slack = Slack.parse(text)
    found: dict[str, dict[str, Any]] = {}
    for name, start in fixed_starts(jobs, num_procs).items():
        found[f"{name} + easy"] = _figures(measured(jobs, start))
    for name in INSIDE:
        begin = time.process_time()
        start = starts_of(trace, num_procs, classic_candidate(name), slack)
        found[f"{name} inside"] = _figures(measured(jobs, start), begin)
    for name, method in methods(path.name, options.what == "parts", options.shipped).items():
        begin = time.process_time()
        result = method(trace, num_procs, slack)
        start = result if isinstance(result, np.ndarray) else result.start_s
        found[name] = _figures(measured(jobs, start), begin)
        if not isinstance(result, np.ndarray):
            found[name] |= {"shares": result.shares, "late": int(np.count_nonzero(result.start_s > result.due_s))}
    if options.what == "curve":
        start = portfolio_replay(trace, num_procs, seed=1).start_s
        found["portfolio + easy"] = _figures(measured(jobs, start))
    ROWS.parent.mkdir(exist_ok=True)
    with ROWS.open("a") as out:
        out.write(json.dumps({**key, "commit": commit(), "methods": found}) + "\n")
    best = min(one["slowdown"] for name, one in found.items() if name.endswith("+ easy"))
    shown = {name: round(one["slowdown"] / best, 2) for name, one in found.items() if "+ easy" not in name}
    print(f"{log[:18]} {seed} {text}: {shown} {found['mars']['shares']}", file=sys.stderr, flush=True)


def curve(options: argparse.Namespace) -> None:
    """The same over several slacks."""
    logs(options)


def _figures(one: Measured, begin: float | None = None) -> dict[str, Any]:
    return {**vars(one), **({} if begin is None else {"cpu_s": time.process_time() - begin})}


def _rows() -> list[dict[str, Any]]:
    return [json.loads(line) for line in ROWS.read_text().splitlines()] if ROWS.exists() else []


def table(options: argparse.Namespace) -> None:
    """Print geometric means over logs with 95 % intervals over thinnings, and the worst log."""
    groups: dict[tuple[str, ...], dict[str, list[dict[str, Any]]]] = defaultdict(lambda: defaultdict(list))
    for row in _rows():
        if row["tag"] == options.tag:
            what = "parts" if row["what"] == "parts" else "logs"
            groups[what, row["weights"], str(row["max_jobs"]), row["slack"]][row["log"]].append(row["methods"])
    held = ("shipped" if options.shipped else "held out", str(options.max_jobs))
    for key, by_log in groups.items():
        print(f"\n{' | '.join(key)}: {len(by_log)} logs, {min(map(len, by_log.values()))} thinnings at least")
        print(f"{'':30}{'slowdown':>20}{'worst':>7}{'inside':>8}{'worst':>7}{'p99':>6}{'longest':>9}{'Jain':>6}")
        for name in next(iter(by_log.values()))[0]:
            if "+ easy" in name and name not in ("fcfs + easy", "portfolio + easy"):
                continue
            ratio = {log: np.array([_ratios(rows, name) for rows in found]) for log, found in by_log.items()}
            figures = _line(name, ratio)
            if options.ledger and key == ("logs", *held, options.slack) and name in RECORDED:
                text = f"{len(by_log)} logs, {options.max_jobs} jobs each, {options.slack}"
                measured_at = ", ".join(sorted({row["commit"] for row in _rows() if row["slack"] == options.slack}))
                for what, value, more in figures:
                    more |= {"instances": text, "bar": BARS[what] if name == "mars" else ""}
                    more |= {"seeds": f"{options.thinnings} thinnings", "note": f"measured at {measured_at}"}
                    record(f"mars/logs/{RECORDED[name]}/{what}", value, "ratio", **more)


def _ratios(rows: dict[str, Any], name: str) -> list[float]:
    """Return logarithms: slowdown over the best without and inside, p99, longest wait and Jain over FCFS's."""
    best = min(one["slowdown"] for other, one in rows.items() if other.endswith("+ easy") and "portfolio" not in other)
    inside = min(one["slowdown"] for other, one in rows.items() if other.endswith(" inside"))
    base, one = rows["fcfs + easy"], rows[name]
    waits = [
        np.log((one[part] + 600.0) / (base[part] + 600.0)) for part in ("p99_wait_s", "longest_wait_s")
    ]  # ten minutes more, so that logs without waits count as equal
    slowdown = one["slowdown"]
    return [np.log(slowdown / best), np.log(slowdown / inside), *waits, np.log(one["jain"] / base["jain"])]


def _line(name: str, ratio: dict[str, Floats]) -> list[tuple[str, float, dict[str, Any]]]:
    """Print a method's line and return what the ledger keeps of it."""
    by_log = np.array([one.mean(axis=0) for one in ratio.values()])
    rng = np.random.default_rng(0)
    drawn = [
        np.mean([one[rng.integers(0, len(one), len(one)), 0].mean() for one in ratio.values()]) for _ in range(500)
    ]
    low, high = np.exp(np.percentile(drawn, [2.5, 97.5]))
    mean, worst = np.exp(by_log.mean(axis=0)), np.exp(by_log.max(axis=0))
    print(
        f"{name:30}{mean[0]:7.3f} ({low:.3f}-{high:.3f}){worst[0]:7.2f}{mean[1]:8.3f}{worst[1]:7.2f}"
        f"{mean[2]:6.2f}{mean[3]:9.2f}{mean[4]:6.2f}"
    )
    best, easy = "best fixed order in hindsight", "FCFS with EASY, without promises"
    return [
        ("slowdown", mean[0], {"low": low, "high": high, "baseline": f"{best} without promises"}),
        ("slowdown-inside", mean[1], {"baseline": f"{best} inside the promises"}),
        ("worst-log-inside", worst[1], {"baseline": f"{best} inside the promises"}),
        ("p99-wait", mean[2], {"baseline": easy}),
        ("longest-wait", mean[3], {"baseline": easy}),
        ("jain", mean[4], {"baseline": easy}),
    ]


def sequences(options: argparse.Namespace) -> None:
    """Replay RLScheduler's ten sequences of 1,024 jobs, each on an empty machine, by MARS."""
    for name, (file, bar) in SEQUENCES.items():
        trace, num_procs = rlscheduler.read_jobs(options.data / "swf" / f"{file}.swf.gz")
        for text in options.slack.split(","):
            found = []
            for first in rlscheduler.PUBLISHED_STARTS:
                part = trace.window(first, rlscheduler.SEQUENCE_JOBS).fitting(num_procs)[0]
                every = held_out_nets(file, options.shipped)
                result = mars_replay(part, num_procs, candidates=every, slack=Slack.parse(text))
                found.append(measured(part.arrays(), result.start_s).slowdown)
            print(f"{name:10} slack {text:8} mean {np.mean(found):8.2f}, to reach {bar}", flush=True)


def change(options: argparse.Namespace) -> None:
    """Replay one log and then another on the machine of the first; what follows the change is judged."""
    paths = [path for path in find_logs(options.data, options.logs) if not path.name.startswith(LEFT_OUT)]
    ratios = []
    for one, other in zip(paths[::2], paths[1::2], strict=False):
        (before, num_procs), (after, _) = read_log(one), read_log(other)
        joined, first = _joined(before.window(0, 5000), after.window(0, 5000), num_procs)
        jobs = joined.arrays()
        part = slice(first + 1000, None)
        fixed = fixed_starts(jobs, num_procs)
        slowdown = {name: measured(_part(jobs, part), start[part]).slowdown for name, start in fixed.items()}
        found = mars_replay(joined, num_procs, candidates=held_out_nets(other.name, options.shipped))
        mars = measured(_part(jobs, part), found.start_s[part]).slowdown
        best = min(slowdown, key=lambda name: slowdown[name])
        ratios.append(mars / slowdown[best])
        print(f"{one.name[:14]} then {other.name[:14]}: {ratios[-1]:.3f} of {best}", flush=True)
    print(f"geometric mean {np.exp(np.mean(np.log(ratios))):.3f}")


def _joined(before: Trace, after: Trace, num_procs: int) -> tuple[Trace, int]:
    """Return two logs one after the other, and how many jobs the first has."""
    after = after.fitting(num_procs)[0]
    gap = before.submit_s[-1] - after.submit_s[0] + 60.0
    columns = [
        np.concatenate([getattr(before, name), getattr(after, name) + (gap if name == "submit_s" else 0)])
        for name in ("submit_s", "run_s", "num_procs", "estimate_s")
    ]
    shift = 0 if before.user is None else int(before.user.max()) + 1
    users = [np.zeros(part.num_jobs, np.int32) if part.user is None else part.user for part in (before, after)]
    user = np.concatenate([users[0], users[1] + shift])
    return Trace.of(*columns, name="joined", user=user).fitting(num_procs)[0], before.num_jobs


def _part(jobs: QueueArrays, part: slice) -> QueueArrays:
    return jobs._replace(**{name: getattr(jobs, name)[part] for name in ("submit", "run", "procs", "user")})


def speed(options: argparse.Namespace) -> None:
    """Print the CPU time of whole replays, and the longest epochs."""
    for path in find_logs(options.data, options.logs):
        trace, num_procs = read_log(path)
        trace = trace.window(0, min(options.max_jobs or trace.num_jobs, trace.num_jobs))
        for text in options.slack.split(","):
            cpu, wall = time.process_time(), time.perf_counter()
            mars_replay(trace, num_procs, slack=Slack.parse(text))
            cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
            print(f"{path.name[:20]:22}{trace.num_jobs:8,} jobs, slack {text:8} {wall:7.1f} s, {cpu:7.1f} s of CPU")


def latency(options: argparse.Namespace) -> None:
    """Print the time of single decisions while at least 1,000 jobs wait; arrivals are pressed together for that."""
    for path in find_logs(options.data, options.logs or "CTC,SDSC-BLUE"):
        whole, num_procs = read_log(path)
        part = whole.window(0, min(options.max_jobs or whole.num_jobs, whole.num_jobs))
        trace = replace(part, submit_s=part.submit_s[0] + 0.1 * (part.submit_s - part.submit_s[0]))
        for text in options.slack.split(","):
            took = _decision_times(trace, num_procs, Slack.parse(text))
            shown = ", ".join(f"p{q} {np.percentile(took, q) * 1e3:.2f} ms" for q in (50, 95, 99)) if took else "none"
            print(
                f"{path.name[:14]:16} slack {text:14} {len(took):6,} decisions with 1,000 waiting: {shown}", flush=True
            )


def _decision_times(trace: Trace, num_procs: int, slack: Slack, least: int = 1000) -> list[float]:
    """Lead the real queue from arrival to arrival by a network; return CPU seconds per event with a long queue."""
    one = next(one for one in candidates_of() if one.is_trained)
    jobs = trace.fitting(num_procs)[0].arrays()
    queue = PromiseQueue.of(jobs, num_procs, slack.of(jobs.estimate), new_forecasts(jobs))
    beside = PolicyQueue.of(jobs, num_procs, classic_candidate("fcfs"))
    scores = new_scores(len(jobs.submit))._replace(reference=beside.queue.state.start)
    took: list[float] = []
    for count in range(1, len(jobs.submit)):
        begin = time.thread_time()
        num_events = play_beside(
            *(jobs, num_procs, queue.state, one.order(learns=True), queue.forecasts),
            *(one.net, scores, MARS_PARAMETERS.forecast_pause, count),
            *(beside.queue.jobs, beside.queue.state, beside.policy, beside.queue.forecasts),
        )
        if len(queue.waiting) >= least and num_events:
            took += [(time.thread_time() - begin) / num_events] * num_events
        if len(took) >= 5000:
            break
    return took


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    choices = ["logs", "parts", "curve", "sequences", "change", "speed", "latency", "table", "cost", "portfolio"]
    parser.add_argument("what", choices=choices)
    data = Path(os.environ.get("STRETTO_DATA", HERE.parents[1] / "shared/data"))
    parser.add_argument("--data", type=Path, default=data)
    parser.add_argument("--logs", default="", help="beginnings of file names, comma-separated")
    parser.add_argument("--slack", default="24h+4e")
    parser.add_argument("--thinnings", type=int, default=10)
    parser.add_argument("--max-jobs", type=int, default=8000, help="0 = whole logs")
    parser.add_argument("--shipped", action="store_true", help="the weights that come with Stretto, which saw the logs")
    parser.add_argument("--tag", default="", help="keeps rows of an experiment apart")
    parser.add_argument("--seeds", type=lambda text: [int(one) for one in text.split(",")], default=[0])
    parser.add_argument("--generated", default="")
    parser.add_argument("--recorded", action="store_true")
    parser.add_argument("--ledger", action="store_true", help="add logs, with one slack, to benchmarks/ledger.jsonl")
    return parser.parse_args()


if __name__ == "__main__":
    main()
