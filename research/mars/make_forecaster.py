"""The forecaster of MARS: made from many logs, and judged on logs that it has not seen.

    python -m research.mars.make_forecaster ship        # train what comes with Stretto, and write it
    python -m research.mars.make_forecaster unseen      # leave one log out: errors, and the default order with it

*ship* learns from the first 60 % of ten logs, and of generated ones, whose estimates are exact; the four held-out
logs of ``mars.py`` are not among them. *unseen* trains once for every log on all the others and prints, for its last
40 %, the error of the estimate, of means over like jobs, and of the forecaster (root mean square of the logarithm of
the ratio), then the mean bounded slowdown of the default order by the latter two.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "benchmarks"))
from mars_portfolio import NUM_PROCS, shaken
from measure import print_table
from peer_venv import HERE
from queue_logs import HELD_OUT, commit, find_logs, judge, read_log
from research.mars.forecaster_trainer import Examples, fit, gather, join

from stretto.core.csr import Floats
from stretto.core.trace import QueueArrays
from stretto.queues.kernels.forecast import BOUND, believe, new_past, remember
from stretto.queues.mars.candidates import default_net, plain_net
from stretto.queues.mars.forecaster import SHIPPED, blend, save_forecaster
from stretto.queues.mars.kernels.forecast import LEAK, NUM_HEADS, NUM_INPUTS, TYPICAL, Forecaster
from stretto.queues.mars.kernels.policy import ScoreNet
from stretto.queues.mars.kernels.run import run_mars
from stretto.queues.mars.network import classic_net
from stretto.queues.mars.run import SHARE
from stretto.queues.portfolio import kinds_of
from stretto.queues.workloads.lublin import lublin

#: Logs on machines that are so empty, or with estimates so exact, that a few examples are enough.
EASY = ("LCG", "NASA", "OSC", "SDSC-Par")
#: Examples of a log, of an easy one, and of a generated one.
COUNT, FEW, FEWEST = 100_000, 10_000, 4_000
#: Networks that are blended, and the hidden units of each.
NUM_NETS, NUM_HIDDEN = 3, 48
EPOCHS = 20
#: Loads of generated logs.
LOADS = (0.6, 0.7, 0.8, 0.9, 1.0, 1.1)


class Log(NamedTuple):
    """A log, and what can be learned from it."""

    name: str
    jobs: QueueArrays
    num_procs: int
    examples: Examples


def main() -> None:
    """Train, and write or judge."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    default = os.environ.get("STRETTO_DATA", HERE.parent.parent / "shared" / "data")
    parser.add_argument("what", choices=("ship", "unseen"))
    parser.add_argument("--data", type=Path, default=Path(default), help="folder that holds swf/")
    parser.add_argument("--logs", default="", help="unseen: comma-separated beginnings of names; all by default")
    options = parser.parse_args()
    logs = [*_recorded(options.data), *_generated()]
    if options.what == "ship":
        known = [log for log in logs if not log.name.startswith(HELD_OUT)]
        forecaster = train(known, SHARE)
        meta = {"logs": [log.name for log in known], "share": SHARE, "commit": commit()}
        save_forecaster(SHIPPED, forecaster, meta)
        print(f"wrote {SHIPPED.relative_to(HERE.parent)}, {SHIPPED.stat().st_size:,} bytes")
        return
    wanted = tuple(options.logs.split(","))
    print_table(
        [("log", "estimate", "like jobs", "forecaster", "default-plain", "default-order"), *_unseen(logs, wanted)]
    )


def _unseen(logs: Sequence[Log], wanted: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    for log in logs:
        if not log.name.startswith(wanted) or log.name.startswith(("generated", *EASY)):
            continue
        forecaster = train([other for other in logs if other is not log], 1.0)
        judged = slice(int(SHARE * len(log.jobs.submit)), None)
        late = log.examples.take(log.examples.job >= judged.start)
        errors = [late.log_ratio, late.log_ratio - said(forecaster, late.x)[:, TYPICAL]]
        known, believed = _by_like_jobs(log, judged)
        costs = [judge(log.jobs, _play(log, net.net, forecaster), judged) for net in (plain_net(), default_net())]
        figures = [_rms(errors[0]), _rms(known - believed), _rms(errors[1])]
        line = (log.name, *(f"{one:.3f}" for one in figures), *(f"{one:.3f}" for one in costs))
        print(*line, flush=True)
        yield line


def train(logs: Sequence[Log], share: float) -> Forecaster:
    """Learn from the first part of some logs: several networks as one."""
    parts = []
    for log in logs:
        early = log.examples.take(log.examples.job < share * len(log.jobs.submit))
        most = FEWEST if log.name.startswith("generated") else FEW if log.name.startswith(EASY) else COUNT
        parts.append(early.take(np.random.default_rng(0).permutation(len(early.job))[:most]))
    examples = join(parts)
    return blend([fit(examples, seed=seed, num_hidden=NUM_HIDDEN, epochs=EPOCHS) for seed in range(NUM_NETS)])


def said(forecaster: Forecaster, x: Floats) -> Floats:
    """Return what a forecaster says of many examples."""
    z = x @ forecaster.first + forecaster.bias
    found: Floats = np.maximum(z, LEAK * z) @ forecaster.out + forecaster.out_bias
    return found


def _recorded(data: Path) -> Iterator[Log]:
    """Yield all logs, each replayed in three orders, of which two are shaken."""
    for path in find_logs(data):
        recorded, num_procs = read_log(path)
        parts = []
        for seed, net in enumerate((plain_net(), classic_net("saf"), plain_net())):
            jobs = shaken(recorded, seed).fitting(num_procs)[0].arrays()
            start = _start(jobs, num_procs, net.net, _nothing())
            parts.append(gather(jobs, start, count=COUNT // 2, seed=seed))
        name = path.name.removesuffix(".swf.gz")
        print("read", name, flush=True)
        yield Log(name, recorded.arrays(), num_procs, join(parts))


def _generated() -> Iterator[Log]:
    for k, load in enumerate(LOADS):
        jobs = lublin(6000, seed=1000 + k, load=load).fitting(NUM_PROCS)[0].arrays()
        start = _start(jobs, NUM_PROCS, plain_net().net, _nothing())
        yield Log(f"generated {load:g}", jobs, NUM_PROCS, gather(jobs, start, count=3 * FEWEST, seed=k))


def _nothing() -> Forecaster:
    """Return a forecaster for orders that do not ask it."""
    return Forecaster(np.zeros((NUM_INPUTS, 1)), np.zeros(1), np.zeros((1, NUM_HEADS)), np.zeros(NUM_HEADS))


def _play(log: Log, net: ScoreNet, forecaster: Forecaster) -> Floats:
    return _start(log.jobs, log.num_procs, net, forecaster)


def _start(jobs: QueueArrays, num_procs: int, net: ScoreNet, forecaster: Forecaster) -> Floats:
    start = np.empty(len(jobs.submit))
    run_mars(jobs, kinds_of(jobs), num_procs, net, forecaster, start)
    return start


def _by_like_jobs(log: Log, judged: slice) -> tuple[Floats, Floats]:
    """Return log ratios of jobs, and what means over like jobs say of each when the one before it has ended."""
    jobs, kinds = log.jobs, kinds_of(log.jobs)
    start = _play(log, plain_net().net, _nothing())
    past = new_past(int(kinds.max()) + 1)
    end = start + jobs.run
    order = np.argsort(end, kind="stable")
    longest = np.maximum(jobs.estimate, BOUND)
    believed = np.zeros(len(jobs.submit))
    done = 0
    for job in range(len(jobs.submit)):
        while done < len(order) and end[order[done]] <= jobs.submit[job]:
            ended = order[done]
            remember(past, kinds[ended], jobs.run[ended], max(1.0, jobs.estimate[ended]))
            done += 1
        if job >= judged.start:
            believed[job] = np.log(believe(past, kinds[job], max(1.0, jobs.estimate[job])) / longest[job])
    return np.log(np.maximum(jobs.run, BOUND) / longest)[judged], believed[judged]


def _rms(error: Floats) -> float:
    return float(np.sqrt(np.mean(np.square(error))))


if __name__ == "__main__":
    main()
