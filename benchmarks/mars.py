"""MARS beside the best classic orders: on RLScheduler's sequences, on whole logs, on logs it never saw, after a change.

    python benchmarks/mars.py sequences --budget 120 --seeds 1,2    # training and test on RLScheduler's sequences
    python benchmarks/mars.py logs --budget 60                      # 16 logs: trained on 60 %, judged on 40 %
    python benchmarks/mars.py unseen                                # on the four held-out logs, nothing trained
    python benchmarks/mars.py change                                # log A, then log B
    python benchmarks/mars.py cost --seeds 1,2,3                    # workflows over owned, rented and spot nodes
    python benchmarks/mars.py portfolio --seeds 0,1,2,3,4           # whole logs, against the look-ahead portfolio
    python benchmarks/mars.py portfolio --generated 0.8,1.06        # the same on generated logs
    python benchmarks/mars.py portfolio --recorded --seeds 0,1,2    # the same on logs as they are
    python benchmarks/mars.py parts --seeds 1,2,3                   # what beliefs and look-ahead are worth
    python benchmarks/mars.py speed

Mean bounded slowdown, EASY, user estimates. *Sequences*: 10 x 1,024 jobs, each on an empty machine; no job of any of
them is trained on. *Logs*: the whole log is replayed, and its last 40 % of jobs are judged, for MARS and the fixed
strategies alike; the opponent is the fixed strategy that is best there, chosen afterwards. ``--budget`` is seconds of
training per trace on two cores, that is half its CPU time; for logs, wall time.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
from mars_cost import cost
from mars_parts import parts
from mars_portfolio import portfolio
from measure import print_table
from peer_venv import HERE
from queue_logs import UNSEEN, commit, find_logs, fixed_starts, judge, read_log

from stretto.core.csr import Floats
from stretto.core.trace import Trace
from stretto.files.document import read_document
from stretto.files.traces.reader import Faults
from stretto.files.traces.swf_rows import JOB, RUN, USER, read_rows
from stretto.learning.loop import TrainingRun
from stretto.learning.trainer import TrainingSpec
from stretto.queues.mars.candidates import candidates_of
from stretto.queues.mars.forecaster import shipped
from stretto.queues.mars.kernels.run import advance, new_state
from stretto.queues.mars.network import MarsNet, classic_net
from stretto.queues.mars.replay import mars_replay
from stretto.queues.mars.run import SHARE, MarsRun
from stretto.queues.mars.trainer import Evolution, MarsTrainer, Objective
from stretto.queues.mars.windows import draw_windows, make_window
from stretto.queues.portfolio import kinds_of

sys.path.insert(0, str(HERE.parent))
from research.mars import rlscheduler

#: RLScheduler's traces: file, best re-sorted classic under EASY, whose longest wait is the limit, and what to reach.
SEQUENCES = {
    "Lublin-1": ("lublin_256", "f4", 29.7),
    "Lublin-2": ("lublin_256_new2", "f3", 65.7),
    "SDSC-SP2": ("SDSC-SP2-1998-4.2-cln", "wfp3", 397.8),
    "HPC2N": ("HPC2N-2002-2.2-cln", "f2", 49.9),
}
#: Jobs after a change that are not judged.
SETTLE_JOBS = 1000


def main() -> None:
    """Run one benchmark, print its table, keep every row."""
    options = _options()
    stamp = datetime.now(UTC).strftime("%Y%m%dT%H%M%SZ")
    rows: list[dict[str, Any]] = []
    lines: list[tuple[str, ...]] = []
    for row, line in TABLES[options.what](options):
        if row:
            rows.append(row)
            print(*line, flush=True)
        lines.append(line)
    print()
    print_table(lines)
    (HERE / "results").mkdir(exist_ok=True)
    target = HERE / "results" / f"mars-{options.what}-{stamp}.jsonl"
    common = {"date": stamp, "commit": commit(), "what": options.what, "budget_s": options.budget}
    target.write_text("".join(json.dumps({**row, **common}) + "\n" for row in rows))
    if options.what in ("logs", "unseen") and rows:
        ratio = np.array([row["ratio"] for row in rows])
        fcfs = np.array([row["to_fcfs"] for row in rows])
        print(
            f"\nto the best fixed: mean {ratio.mean():.3f}, geometric {np.exp(np.log(ratio).mean()):.3f},"
            f" worst {ratio.max():.3f}; to FCFS: mean {fcfs.mean():.3f}"
        )
    print(f"rows in {target.relative_to(HERE.parent)}")


Lines = Iterator[tuple[dict[str, Any], tuple[str, ...]]]


def read_with_users(path: Path) -> tuple[Trace, int]:
    """Read jobs as RLScheduler does, and their users, which it does not look at."""
    trace, num_procs = rlscheduler.read_jobs(path)
    document = read_document(path)
    values, _ = read_rows(document, Faults(document, strict=True))
    values = values[values[:, RUN] != 0]
    users = values[np.argsort(values[:, JOB], kind="stable"), USER].astype(np.int32)
    return replace(trace, user=users), num_procs


def sequences(options: argparse.Namespace) -> Lines:
    """Train on jobs outside the sequences and test on them."""
    yield (
        {},
        ("trace", "seed", "to reach", "classic", "its", "MARS", "95 %", "max wait", "its", "longest", "its", "jobs/s"),
    )
    for name, (file, classic, bar) in SEQUENCES.items():
        if options.logs and not name.startswith(tuple(options.logs.split(","))):
            continue
        trace, num_procs = read_with_users(options.data / "swf" / f"{file}.swf.gz")
        usable = np.ones(trace.num_jobs, np.bool_)
        for first in rlscheduler.PUBLISHED_STARTS:
            usable[first : first + rlscheduler.SEQUENCE_JOBS] = False
        tests = [
            make_window(trace.take(slice(first, first + rlscheduler.SEQUENCE_JOBS)), num_procs)
            for first in rlscheduler.PUBLISHED_STARTS
        ]
        for seed in options.seeds:
            net, seconds, num_jobs = train_outside(trace, num_procs, usable, classic, seed, options.budget)
            found = [window.play(net.net) for window in tests]
            theirs = [window.classics[classic] for window in tests]
            ours = np.array([one.slowdown for one in found])
            wait = np.array([one.max_wait_s for one in found])
            limit = np.array([one.max_wait_s for one in theirs])
            row = {
                "instance": name,
                "seed": seed,
                "mean_bounded_slowdown": float(ours.mean()),
                "per_sequence": ours.tolist(),
                "max_wait_s": wait.tolist(),
                "classic": classic,
                "classic_slowdown": float(np.mean([one.slowdown for one in theirs])),
                "classic_max_wait_s": limit.tolist(),
                "train_seconds": seconds,
                "train_jobs_per_s": num_jobs / seconds,
            }
            low, high = _bootstrap(ours)
            yield (
                row,
                (
                    *(name, str(seed), f"{bar}", classic, f"{row['classic_slowdown']:.2f}", f"{ours.mean():.2f}"),
                    *(f"{low:.1f}-{high:.1f}", f"{wait.mean():.0f}", f"{limit.mean():.0f}", f"{wait.max():.0f}"),
                    *(f"{limit.max():.0f}", f"{num_jobs / seconds:,.0f}"),
                ),
            )


def train_outside(
    trace: Trace,
    num_procs: int,
    usable: np.ndarray[Any, Any],
    classic: str,
    seed: int,
    budget_s: float,
) -> tuple[MarsNet, float, int]:
    """Train on windows of usable jobs; where those are few, most windows are pieced together."""
    rng = np.random.default_rng(seed)
    pieced = 0.8 if trace.num_jobs < 20_000 else 0.0
    begin, cpu = time.perf_counter(), time.process_time()
    windows = draw_windows(
        trace, num_procs, 352, rlscheduler.SEQUENCE_JOBS, rng, usable=usable, pieced=pieced, busy=True
    )
    windows = [windows[k] for k in rng.permutation(len(windows))]
    evolution = Evolution(population=24, windows_per_generation=16, validate_every=10)
    trainer = MarsTrainer(
        windows[96:],
        windows[:96],
        seed=seed,
        objective=Objective(wait_of=classic, wait_share=0.95),
        evolution=evolution,
    )
    num_jobs = 0
    while time.process_time() - cpu < 2.0 * budget_s:  # two cores; the machine may be shared
        num_jobs += trainer.step().num_jobs
    return trainer.net(), time.perf_counter() - begin, num_jobs


def logs(options: argparse.Namespace) -> Lines:
    """Replay whole logs with the shipped networks and, with a budget, one trained on the first part of each log."""
    yield from _logs(options, find_logs(options.data, options.logs), options.budget)


def unseen(options: argparse.Namespace) -> Lines:
    """Replay the logs that were held out, with the shipped networks only."""
    yield from _logs(options, find_logs(options.data, ",".join(UNSEEN)), 0.0)


def _logs(options: argparse.Namespace, paths: Sequence[Path], budget_s: float) -> Lines:
    yield {}, ("log", "best fixed", "its", "FCFS", "MARS", "ratio", "to FCFS", "max wait", "cpu s", "mostly followed")
    for path in paths:
        trace, num_procs = read_log(path)
        jobs = trace.arrays()
        fixed = fixed_starts(jobs, num_procs)
        judged = slice(int(SHARE * trace.num_jobs), None)
        cost = {name: judge(jobs, start, judged) for name, start in fixed.items()}
        best = min(cost, key=lambda name: cost[name])
        nets: list[MarsNet] = []
        if budget_s:
            specialist = MarsRun((trace, num_procs), TrainingSpec(seed=options.seeds[0]))
            TrainingRun(specialist, algorithm="mars").train(time_limit_s=budget_s)
            nets = [specialist.net]
        begin = time.process_time()
        found = mars_replay(trace, num_procs, candidates=candidates_of(nets=nets))
        cpu_s = time.process_time() - begin
        ours = judge(jobs, found.start_s, judged)
        share = np.bincount(found.chosen[judged], minlength=len(found.candidates)) / len(found.chosen[judged])
        waits = [float((start - jobs.submit)[judged].max()) for start in (found.start_s, fixed[best])]
        row = {
            "instance": path.name,
            "seed": options.seeds[0],
            "best": best,
            "fixed": cost,
            "mean_bounded_slowdown": ours,
            "ratio": ours / cost[best],
            "to_fcfs": ours / cost["fcfs"],
            "max_wait_s": waits[0],
            "best_max_wait_s": waits[1],
            "followed": dict(zip(found.candidates, share.tolist(), strict=True)),
        }
        top = int(np.argmax(share))
        yield (
            row,
            (
                *(path.name.removesuffix(".swf.gz"), best, f"{cost[best]:.2f}", f"{cost['fcfs']:.2f}", f"{ours:.2f}"),
                *(f"{row['ratio']:.3f}", f"{row['to_fcfs']:.3f}", f"{waits[0] / max(waits[1], 1.0):.2f}"),
                *(f"{cpu_s:.1f}", f"{found.candidates[top]} {share[top]:.0%}"),
            ),
        )


def change(options: argparse.Namespace) -> Lines:
    """Join two logs and compare, in each phase after the first jobs, with what is best in that phase."""
    yield {}, ("logs", "phase", "best fixed", "its", "MARS", "ratio")
    pairs = (("SDSC-SP2", "lublin_256_new2"), ("lublin_256_new2", "SDSC-SP2"), ("Theta", "CTC-SP2"), ("CTC", "HPC2N"))
    for pair in pairs:
        parts = [read_log(find_logs(options.data, name)[0]) for name in pair]
        num_procs = parts[0][1]
        cut = [joinable(trace, procs, num_procs) for trace, procs in parts]
        trace = join(*cut)
        jobs = trace.arrays()
        fixed = fixed_starts(jobs, num_procs)
        found = mars_replay(trace, num_procs)
        middle = cut[0].num_jobs
        for phase, part in enumerate((slice(SETTLE_JOBS, middle), slice(middle + SETTLE_JOBS, None))):
            cost = {name: judge(jobs, start, part) for name, start in fixed.items()}
            best = min(cost, key=lambda name: cost[name])
            ours = judge(jobs, found.start_s, part)
            row = {"instance": "+".join(pair), "phase": phase, "best": best, "fixed": cost, "ours": ours}
            yield (
                row,
                ("+".join(pair), str(phase), best, f"{cost[best]:.2f}", f"{ours:.2f}", f"{ours / cost[best]:.3f}"),
            )


def joinable(trace: Trace, procs: int, num_procs: int, count: int = 8000) -> Trace:
    """Return jobs of the middle of a log, as wide on another machine as they were on their own."""
    part = trace.window(trace.num_jobs // 3, count)
    width = np.maximum(1, np.round(part.num_procs * (num_procs / procs))).astype(np.int32)
    return replace(part, num_procs=np.minimum(width, num_procs))


def join(first: Trace, second: Trace) -> Trace:
    """Return one trace after the other; users are not the same people."""
    gap = float(first.submit_s[-1]) + 60.0
    users = [trace.user if trace.user is not None else np.zeros(trace.num_jobs, np.int32) for trace in (first, second)]
    return Trace.of(
        np.r_[first.submit_s, second.submit_s + gap],
        np.r_[first.run_s, second.run_s],
        np.r_[first.num_procs, second.num_procs],
        np.r_[first.estimate_s, second.estimate_s],
        user=np.r_[users[0], users[1] + users[0].max() + 1].astype(np.int32),
    )


def speed(options: argparse.Namespace) -> Lines:
    """Measure training and the latency of a decision with a thousand jobs waiting."""
    yield {}, ("what", "hidden units", "value")
    trace, num_procs = read_with_users(options.data / "swf" / "lublin_256.swf.gz")
    rng = np.random.default_rng(options.seeds[0])
    windows = draw_windows(trace, num_procs, 24, 1024, rng)
    for hidden in (0, 16, 32):
        evolution = Evolution(hidden=hidden, windows_per_generation=16, validate_every=1000)
        trainer = MarsTrainer(windows, windows[:1], seed=1, evolution=evolution)
        trainer.step()
        begin = time.perf_counter()
        num_jobs = sum(trainer.step().num_jobs for _ in range(3))
        rate = num_jobs / (time.perf_counter() - begin)
        yield (
            {"instance": "training", "hidden": hidden, "jobs_per_s": rate},
            ("training", str(hidden), f"{rate:,.0f} scheduled jobs/s, two threads"),
        )
        net = classic_net("saf")
        net = net.with_hidden(hidden, 1) if hidden else net
        net = replace(net, net=net.net._replace(out=np.full(hidden, 0.1)))
        took = latencies(net)
        p50, p99 = np.percentile(took, [50, 99]) * 1e3
        yield (
            {"instance": "latency", "hidden": hidden, "p50_ms": p50, "p99_ms": p99},
            ("decision, 1,000 waiting", str(hidden), f"p50 {p50:.3f} ms, p99 {p99:.3f} ms"),
        )


def latencies(net: MarsNet, waiting: int = 1000, times: int = 2000) -> Floats:
    """Time single decisions: a narrow job ends or arrives while so many wide ones wait."""
    rng = np.random.default_rng(1)
    n = waiting + 1 + times
    submit = np.r_[0.0, np.full(waiting, 1.0), 2.0 + np.arange(times)]
    procs = np.r_[60, rng.integers(41, 100, waiting), np.ones(times)].astype(np.int32)
    run = np.r_[1e7, rng.uniform(100, 1e4, waiting), np.full(times, 0.5)]
    jobs = Trace.of(submit, run, procs, run * rng.uniform(1, 3, n)).arrays()
    jobs = jobs._replace(user=rng.integers(0, 50, n).astype(np.int32))
    kinds = kinds_of(jobs)
    start = np.full(n, -1.0)
    state = new_state(jobs, kinds, 100, net.num_hidden, shipped(), np.ones(n, np.bool_))
    advance(jobs, kinds, 100, net.net, state, waiting + 1, start)
    took = np.empty(times)
    for k in range(times):
        begin = time.perf_counter()
        advance(jobs, kinds, 100, net.net, state, waiting + 2 + k, start)
        took[k] = time.perf_counter() - begin
    return took


def _bootstrap(values: Floats) -> tuple[float, float]:
    rng = np.random.default_rng(0)
    means = rng.choice(values, size=(2000, len(values))).mean(axis=1)
    low, high = np.percentile(means, [2.5, 97.5])
    return float(low), float(high)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    default = os.environ.get("STRETTO_DATA", HERE.parent.parent / "shared" / "data")
    parser.add_argument("what", choices=tuple(TABLES))
    parser.add_argument("--data", type=Path, default=Path(default), help="folder that holds swf/")
    parser.add_argument("--logs", default="", help="comma-separated beginnings of names; all by default")
    parser.add_argument("--budget", type=float, default=None, help="seconds of training per trace")
    parser.add_argument("--load", type=float, default=1.0, help="of the stream of workflows on the owned nodes")
    parser.add_argument("--seeds", default="1", help="comma-separated")
    parser.add_argument(
        "--recorded", action="store_true", help="logs as they are, the portfolio's draws differ (portfolio)"
    )
    parser.add_argument("--generated", default="", help="loads of generated logs, comma-separated (portfolio)")
    options = parser.parse_args()
    options.seeds = [int(seed) for seed in options.seeds.split(",")]
    options.generated = [float(load) for load in options.generated.split(",") if load]
    if options.budget is None:
        options.budget = 600.0 if options.what == "sequences" else 0.0
    return options


TABLES = {
    "sequences": sequences,
    "logs": logs,
    "portfolio": portfolio,
    "parts": parts,
    "unseen": unseen,
    "change": change,
    "cost": cost,
    "speed": speed,
}

if __name__ == "__main__":
    main()
