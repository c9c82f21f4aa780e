"""The strategist of MARS, an actor-critic over strategies: made from many logs, judged on logs that it has not seen.

    python -m research.mars.make_strategist record --logs SDSC-Par,LANL    # what it would have seen, into results/
    python -m research.mars.make_strategist ship                           # train what comes with Stretto, and write it
    python -m research.mars.make_strategist unseen                         # replay held-out logs by evidence and by it

*record* plays the first 60 % of logs (all but the held-out ones of ``mars.py`` by default) and generated ones with
every candidate's shadow beside the default, and keeps what is seen and what each candidate then costs. *ship* trains on
all that was recorded; its threshold is the best on queues that were left out of the training, in three folds. *unseen*
replays whole logs, judges their last 40 %, and prints the mean bounded slowdown by evidence, by the strategist as
shipped, and by one that has learned nothing (the prior).
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "benchmarks"))
from measure import print_table
from peer_venv import HERE
from queue_logs import HELD_OUT, commit, find_logs, judge, read_log
from research.mars.advised_replay import advised_replay
from research.mars.ensemble import shipped_ensemble
from research.mars.epochs import record
from research.mars.strategist import SHIPPED, prior, save_strategist, shipped
from research.mars.strategist_trainer import THRESHOLDS, Epochs, StrategistRules, follow, train

from stretto.core.trace import Trace
from stretto.queues.mars.candidates import candidates_of, penalized_of, variant_nets
from stretto.queues.mars.run import SHARE
from stretto.queues.workloads.lublin import lublin

#: Logs that say little and take long.
LEFT_OUT = ("CERIT", "LCG", "NASA", "RICC")
#: Generated logs: load, seed, processors.
GENERATED = tuple((0.65 + 0.05 * k, 3000 + k, (64, 128, 256)[k % 3]) for k in range(10))
GENERATED_JOBS = 10_000
NUM_FOLDS, SEED = 3, 1
FOLDER = HERE / "results" / "mars-epochs"


def main() -> None:
    """Record, train and write, or judge."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    default = os.environ.get("STRETTO_DATA", HERE.parent.parent / "shared" / "data")
    parser.add_argument("what", choices=("record", "ship", "unseen"))
    parser.add_argument("--data", type=Path, default=Path(default), help="folder that holds swf/")
    parser.add_argument("--logs", default="", help="comma-separated beginnings of names")
    options = parser.parse_args()
    {"record": _record, "ship": _ship, "unseen": _unseen}[options.what](options)


def _sources(options: argparse.Namespace) -> Iterator[tuple[str, Trace, int]]:
    for path in find_logs(options.data, options.logs):
        if options.logs or not path.name.startswith((*HELD_OUT, *LEFT_OUT)):
            trace, num_procs = read_log(path)
            first = trace.take(slice(0, int(SHARE * trace.num_jobs)))
            yield path.name.removesuffix(".swf.gz"), first, num_procs
    for load, seed, num_procs in () if options.logs else GENERATED:
        trace = lublin(GENERATED_JOBS, num_procs=num_procs, seed=seed, load=load).fitting(num_procs)[0]
        yield f"generated-{load:.2f}-{seed}", trace, num_procs


def _record(options: argparse.Namespace) -> None:
    """Keep what would have been seen."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    nets = candidates_of(nets=shipped_ensemble().members)
    names = [net.name for net in nets]
    variants = [net.name for net in variant_nets()]
    for name, trace, num_procs in _sources(options):
        found = record(trace, num_procs, nets, penalized_of(names), variants)
        np.savez_compressed(FOLDER / f"{name}.npz", rows=found.rows.astype(np.float32), cost=found.cost)
        print(f"{name}: {len(found.rows)} epochs", flush=True)


def _recorded() -> list[Epochs]:
    found = []
    for path in sorted(FOLDER.glob("*.npz")):
        with np.load(path) as arrays:
            found.append(Epochs(path.stem, arrays["rows"].astype(np.float64), arrays["cost"]))
    return found


def _ship(options: argparse.Namespace) -> None:
    """Validate the threshold on queues that were left out, train on all, and write."""
    queues = [queue for queue in _recorded() if not queue.name.startswith(HELD_OUT)]
    if len(queues) < NUM_FOLDS:
        raise SystemExit("too little was recorded: run `record` first")
    rules = StrategistRules()
    fold = np.random.default_rng(SEED).permutation(len(queues)) % NUM_FOLDS
    worth = np.zeros(len(THRESHOLDS))
    lines: list[tuple[str, ...]] = [("queue, left out", *(f"{threshold:g}" for threshold in THRESHOLDS))]
    for k in range(NUM_FOLDS):
        found, _ = train([queue for queue, of in zip(queues, fold, strict=True) if of != k], seed=SEED, rules=rules)
        for queue in (queue for queue, of in zip(queues, fold, strict=True) if of == k):
            told = [follow(found, queue, threshold, change=rules.change)[1] for threshold in THRESHOLDS]
            worth += np.array(told) / len(queues)
            lines.append((queue.name, *(f"{one:+.3f}" for one in told)))
    lines.append(("mean", *(f"{one:+.3f}" for one in worth)))
    print("saved against the default per epoch, in logarithms of cost, by threshold:")
    print_table(lines)
    best = THRESHOLDS[int(np.argmax(worth))]
    final, told = train(queues, seed=SEED, rules=rules)
    print(f"trained on all: {told[:10].mean():+.3f} at first, {told[-10:].mean():+.3f} at the end; threshold {best:g}")
    meta = {"queues": [queue.name for queue in queues], "seed": SEED, "share": SHARE, "commit": commit()}
    save_strategist(SHIPPED, replace(final, threshold=np.array([best])), meta)
    print(f"wrote {SHIPPED.relative_to(HERE.parent)}, {SHIPPED.stat().st_size:,} bytes")


def _unseen(options: argparse.Namespace) -> None:
    """Replay logs by evidence and by the strategist."""
    lines: list[tuple[str, ...]] = [
        ("log", "by evidence", "by the strategist", "by the prior", "mostly followed by it")
    ]
    ways = (None, shipped(), prior())
    for path in find_logs(options.data, options.logs or ",".join(HELD_OUT)):
        trace, num_procs = read_log(path)
        jobs, judged = trace.arrays(), slice(int(SHARE * trace.num_jobs), None)
        found = [advised_replay(trace, num_procs, strategist=who) for who in ways]
        count = np.bincount(found[1].chosen[judged], minlength=len(found[1].candidates))
        top = int(np.argmax(count))
        line = (
            path.name.removesuffix(".swf.gz"),
            *(f"{judge(jobs, one.start_s, judged):.3f}" for one in found),
            f"{found[1].candidates[top]} {count[top] / count.sum():.0%}",
        )
        print(*line, flush=True)
        lines.append(line)
    print()
    print_table(lines)


if __name__ == "__main__":
    main()
