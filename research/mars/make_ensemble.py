"""The ensemble of MARS: networks taught by heuristics, when they can be relied on, and what both are worth elsewhere.

    python -m research.mars.make_ensemble ship                   # train what comes with Stretto, and write it
    python -m research.mars.make_ensemble ship --keep-members    # the same networks; fit and calibrate their confidence
    python -m research.mars.make_ensemble unseen                 # what is shipped, on logs that it has not seen

*ship* draws windows of 1,000 jobs from the first 45 % of the training logs and from generated ones, and others for
validation from the next 15 %. The confidence is fitted on stretches of the first 60 % of some of these logs, and
calibrated on the others. *unseen* draws windows from the held-out logs and prints, as geometric means, the slowdown of
each member over that of its teacher and of the default order, on all of them and on those where its teacher is best,
and beside it that of the teacher's order untrained, with the default's reservations, over the teacher; then how well
the confidence holds on stretches of these logs, log by log and over all.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "benchmarks"))
from measure import print_table
from peer_venv import HERE
from queue_logs import HELD_OUT, commit, find_logs, read_log
from research.mars.confidence import INPUTS, Confidence
from research.mars.confidence_trainer import Examples, Report, calibrate, fit, gather, join, judge
from research.mars.ensemble import SHIPPED, Ensemble, load_ensemble, save_ensemble
from research.mars.pretrain import PREFIX, Taught, by_teacher, is_busy, pretrain, ratio_to

from stretto.core.trace import Trace
from stretto.queues.mars.candidates import default_net
from stretto.queues.mars.network import MarsNet, classic_net
from stretto.queues.mars.run import SHARE
from stretto.queues.mars.windows import Window, draw_windows
from stretto.queues.workloads.lublin import lublin

#: Logs on which the confidence is calibrated and its threshold is chosen; it is fitted on the others.
CALIBRATION = ("HPC2N", "LPC", "NASA", "SDSC-SP2", "generated 0.75", "generated 0.95", "generated 1.05")
#: Of a log, what windows for training are drawn from; those for validation come from there to ``SHARE``.
TRAIN_SHARE = 0.45
WINDOW_JOBS = 1000
#: Windows of a log that are drawn, for training and validation; not all are busy.
NUM_TRAIN, NUM_VALIDATION, NUM_UNSEEN = 64, 24, 40
#: Loads of generated logs, their jobs and processors.
LOADS = (0.7, 0.75, 0.8, 0.85, 0.9, 0.95, 1.0, 1.05, 1.1)
GENERATED_JOBS, GENERATED_PROCS = 12_000, 256
#: Stretches of a log for the confidence: how many, and of how many jobs.
NUM_STRETCHES, STRETCH_JOBS = 3, 12_000
SEED = 1


class Log(NamedTuple):
    """A log and its machine."""

    name: str
    trace: Trace
    num_procs: int


def main() -> None:
    """Train and write, or judge."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    default = os.environ.get("STRETTO_DATA", HERE.parent.parent / "shared" / "data")
    parser.add_argument("what", choices=("ship", "unseen"))
    parser.add_argument("--data", type=Path, default=Path(default), help="folder that holds swf/")
    parser.add_argument("--keep-members", action="store_true", help="ship: fit the confidence of the shipped networks")
    options = parser.parse_args()
    recorded = [Log(path.name.removesuffix(".swf.gz"), *read_log(path)) for path in find_logs(options.data)]
    if options.what == "unseen":
        _unseen([log for log in recorded if log.name.startswith(HELD_OUT)])
        return
    known = [*(log for log in recorded if not log.name.startswith(HELD_OUT)), *_generated()]
    _ship(known, options.keep_members)


def _generated() -> Iterator[Log]:
    for k, load in enumerate(LOADS):
        trace = lublin(GENERATED_JOBS, seed=2000 + k, load=load).fitting(GENERATED_PROCS)[0]
        yield Log(f"generated {load:g}", trace, GENERATED_PROCS)


def _ship(logs: Sequence[Log], keeps_members: bool) -> None:
    """Make the file that comes with Stretto."""
    about: dict[str, Any]
    if keeps_members:
        ensemble, about = load_ensemble(SHIPPED)
        members = list(ensemble.members)
    else:
        taught = train_members(logs)
        members = [one.net for one in taught]
        about = {"members": [_facts(one) for one in taught]}
        save_ensemble(SHIPPED, Ensemble(tuple(members), _unsure()), about)  # whoever has no confidence is not followed
    nets = [default_net(), *members]
    examples = [(log.name, _examples(log, nets, k, SHARE)) for k, log in enumerate(logs)]
    model = calibrate(
        fit(join([one for name, one in examples if not name.startswith(CALIBRATION)])),
        join([one for name, one in examples if name.startswith(CALIBRATION)]),
    )
    print("weights:", ", ".join(f"{name} {w:+.2f}" for name, w in zip(INPUTS, model.weight, strict=True)))
    for what, part in (("fitted on", False), ("calibrated on", True)):
        report = judge(model, join([one for name, one in examples if name.startswith(CALIBRATION) == part]))
        _print_report(what, model, report)
    meta = {
        "members": about["members"],
        "logs": [log.name for log in logs],
        "calibrated_on": [log.name for log in logs if log.name.startswith(CALIBRATION)],
        "share": SHARE,
        "seed": SEED,
        "commit": commit(),
    }
    save_ensemble(SHIPPED, Ensemble(tuple(members), model), meta)
    print(f"wrote {SHIPPED.relative_to(HERE.parent)}, {SHIPPED.stat().st_size:,} bytes")


def train_members(logs: Sequence[Log]) -> list[Taught]:
    """Draw windows, and teach a network on those of each heuristic."""
    rng = np.random.default_rng(SEED)
    train: list[Window] = []
    validation: list[Window] = []
    for log in logs:
        first, last = (int(share * log.trace.num_jobs) for share in (TRAIN_SHARE, SHARE))
        train += _windows(log, slice(0, first), NUM_TRAIN, rng)
        validation += _windows(log, slice(first, last), NUM_VALIDATION, rng)
    for what, some in (("train", train), ("validation", validation)):
        counts = {name: len(windows) for name, windows in by_teacher(some).items()}
        print(f"{what}: {len(some)} busy windows, best on them: {counts}", flush=True)
    begin = time.perf_counter()
    found = pretrain(
        train,
        validation,
        seed=SEED,
        on_news=lambda text: print(f"{time.perf_counter() - begin:6.0f} s  {text}", flush=True),
    )
    head = ("member", "windows", "validation", "agreement", "imitation", "to teacher", "to default", "kept")
    print_table([head, *(_line(one) for one in found)])
    return found


def _windows(log: Log, part: slice, count: int, rng: np.random.Generator) -> list[Window]:
    found = draw_windows(log.trace.take(part), log.num_procs, count, WINDOW_JOBS, rng, busy=True)
    return [window for window in found if is_busy(window)]


def _line(one: Taught) -> tuple[str, ...]:
    figures = (one.agreement, one.imitated, one.to_teacher, one.to_default)
    return (one.net.name, str(one.num_train), str(one.num_validation), *(f"{value:.3f}" for value in figures), one.kept)


def _facts(one: Taught) -> dict[str, Any]:
    return {"name": one.net.name} | {
        key: round(value, 4) if isinstance(value, float) else value for key, value in vars(one).items() if key != "net"
    }


def _unsure() -> Confidence:
    zeros = np.zeros(len(INPUTS))
    return Confidence(zeros, zeros + 1.0, zeros, threshold=2.0)


def _examples(log: Log, nets: Sequence[MarsNet], index: int, share: float) -> Examples:
    """Gather what is seen in stretches of the first part of a log, evenly spread."""
    num_jobs = int(share * log.trace.num_jobs)
    length = min(STRETCH_JOBS, num_jobs)
    starts = np.unique(np.linspace(0, num_jobs - length, NUM_STRETCHES).astype(np.int64)).tolist()
    begin = time.perf_counter()
    found = join([gather(log.trace.window(first, length), log.num_procs, nets, log=index) for first in starts])
    cheaper = float(found.is_cheaper.mean())
    took = time.perf_counter() - begin
    print(f"{log.name}: {len(found.x)} examples, {cheaper:.1%} cheaper, {took:.0f} s", flush=True)
    return found


def _print_report(what: str, model: Confidence, report: Report) -> None:
    came = "nobody followed"
    if report.followed:
        came = f"{report.followed:.1%} followed, {report.hits:.1%} of them cheaper, log cost saved {report.gain:+.3f}"
    print(
        f"{what}: {report.came_true:.1%} cheaper; Brier {report.brier:.3f} (of the mean {report.brier_of_mean:.3f}),"
        f" calibration error {report.calibration_error:.3f}; threshold {model.threshold:g}: {came}"
    )


def _unseen(logs: Sequence[Log]) -> None:
    """Judge what is shipped on logs that it has not seen."""
    ensemble, meta = load_ensemble(SHIPPED)
    seen = [name for name in meta["logs"] if name.startswith(HELD_OUT)]
    assert not seen, seen
    rng = np.random.default_rng(SEED)
    windows = [w for log in logs for w in _windows(log, slice(0, log.trace.num_jobs), NUM_UNSEEN, rng)]
    print_table(list(_on_windows(ensemble, windows)))
    nets = [default_net(), *ensemble.members]
    parts = [_examples(log, nets, k, 1.0) for k, log in enumerate(logs)]
    print()
    for log, one in zip(logs, parts, strict=True):
        _print_report(log.name, ensemble.confidence, judge(ensemble.confidence, _alone(one)))
    whole = join(parts)
    report = judge(ensemble.confidence, whole)
    _print_report("all unseen", ensemble.confidence, report)
    for k, net in enumerate(ensemble.members):
        _print_report(net.name, ensemble.confidence, judge(ensemble.confidence, _some(whole, whole.member == k)))
    head = ("said", "share", "mean said", "came true")
    lines = [
        (f"{b.low:.1f}-{b.high:.1f}", f"{b.share:.1%}", f"{b.said:.3f}", f"{b.came_true:.3f}") for b in report.bins
    ]
    print_table([head, *lines])


def _alone(one: Examples) -> Examples:
    return Examples(one.x, one.log_ratio, one.member, np.zeros_like(one.log))


def _some(examples: Examples, which: Any) -> Examples:
    return Examples(examples.x[which], examples.log_ratio[which], examples.member[which], examples.log[which])


def _on_windows(ensemble: Ensemble, windows: Sequence[Window]) -> Iterator[tuple[str, ...]]:
    """Compare members with their teachers, with their teachers' orders untrained, and with the default."""
    yield "member", "windows", "to teacher", "untrained", "to default", "cheaper", "of its teacher"
    for net in ensemble.members:
        teacher = net.name.removeprefix(PREFIX)
        untrained = replace(net, net=default_net().net._replace(skip=classic_net(teacher).net.skip))
        own = by_teacher(windows).get(teacher, [])
        for some, whose in ((windows, "no"), (own, "yes")):
            if some:
                theirs = [window.classics[teacher].slowdown for window in some]
                default = [window.play(default_net().net).slowdown for window in some]
                figures = (ratio_to(theirs, net, some), ratio_to(theirs, untrained, some), ratio_to(default, net, some))
                won = np.mean([w.play(net.net).slowdown < other for w, other in zip(some, default, strict=True)])
                yield net.name, str(len(some)), *(f"{one:.3f}" for one in figures), f"{won:.0%}", whose


if __name__ == "__main__":
    main()
