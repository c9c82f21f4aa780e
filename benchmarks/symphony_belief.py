"""Symphony's belief: its error by part, and calibration on another machine.

    python benchmarks/symphony_belief.py parts                  # error by part, with and without progress
    python benchmarks/symphony_belief.py calibrate --case m1    # parameters fitted to recorded counters
    python benchmarks/symphony_belief.py exact --streams 8      # hgx8 beside an exact filter of its switches

*parts*: held-out streams, decisions at random, mean absolute error over mean utilization. *calibrate*: a rack whose
counters and foreign load differ from what is assumed; error on held-out streams with the assumed parameters, with those
fitted to the counters of six other streams, and with the true ones. *exact*: one seed after the other draws decisions
and noise on all streams; errors of the hidden switches and of all parts, by the belief and by an exact filter of the
sources below each root, with its means and with its medians, which are the best guesses for an absolute error. What is
learned with a belief is in symphony_learning.py.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

os.environ.setdefault("XLA_FLAGS", "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1")
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # research/

import numpy as np
from measure import print_table
from research.symphony.calibration import look_around, measure_belief
from research.symphony.exact_filter import ExactFilter

from stretto.core.csr import Floats
from stretto.racks.belief.fit import OnlineFit, fit_belief
from stretto.racks.belief.recording import CounterRecorder, Observer
from stretto.racks.dispatch import RackEpisode, dispatcher_of
from stretto.racks.kernels.time import refresh
from stretto.racks.params import BeliefParams, CounterSpec, counters_of
from stretto.racks.simulator import RackBatch
from stretto.racks.symphony.cases import Case, World, case, rack_case
from stretto.racks.workloads.streams import ForeignLoad

Row = dict[str, Any]
NUM_RECORDED = 6
#: A progress noise that says nothing.
DEAF = 1e3


def main() -> None:
    """Run one benchmark, print every row and a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=sorted(BENCHMARKS))
    parser.add_argument("--case", default="")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--streams", type=int, default=8)
    parser.add_argument("--steps", type=int, default=100)
    options = parser.parse_args()
    rows = []
    for row in BENCHMARKS[options.what](options):
        print(json.dumps(row), flush=True)
        rows.append(row)
    print()
    print_table([tuple(rows[0]), *(tuple(_text(value) for value in row.values()) for row in rows)])


def _text(value: object) -> str:
    if isinstance(value, list):
        return " ".join(_text(one) for one in value)
    return f"{value:.3g}" if isinstance(value, float) else str(value)


def _case(name: str) -> Case:
    return rack_case(name, 4) if name in ("m1", "m2", "hgx8") else case(name)


def parts(options: argparse.Namespace) -> Iterator[Row]:
    """Compare belief and truth on every preset, with and without the progress of tasks as evidence."""
    names = options.case.split(",") if options.case else ("two-nics", "m1", "m2", "small-rack", "hgx8", "paper-rack")
    for name in names:
        world = _case(name).world(seed=None, num_instances=32)
        is_counted = np.isin(np.arange(len(world.model.resources)), world.counters.resource)
        for what, noise in (("progress", world.belief.progress_noise), ("counters alone", DEAF)):
            told = replace(world, belief=replace(world.belief, progress_noise=noise))
            found = [_errors(told, seed, options.steps, is_counted) for seed in range(options.seeds)]
            mean = np.mean(found, axis=0).tolist()
            keys = ("error", "counted", "uncounted", "coverage")
            spread = [float(min(one[3] for one in found)), float(max(one[3] for one in found))]
            yield {"case": name, "evidence": what, **dict(zip(keys, mean, strict=True)), "coverage of seeds": spread}


def _errors(world: World, seed: int, num_steps: int, is_counted: np.ndarray) -> list[float]:
    looks = look_around(world, seed=seed, num_steps=num_steps, num_envs=8)
    counts = looks.sd > 1e-6
    gap = np.abs(looks.mean - looks.truth)
    errors = [
        float(gap[kept].sum() / max(looks.truth[kept].sum(), 1e-9))
        for kept in (counts, counts & is_counted, counts & ~is_counted)
    ]
    return [*errors, float(np.mean((gap <= 1.96 * looks.sd + 1e-9)[counts]))]


def exact(options: argparse.Namespace) -> Iterator[Row]:
    """Compare the belief about the hidden switches of hgx8 with an exact filter of them."""
    world = _case("hgx8").world(seed=None, num_instances=options.streams)
    for seed in range(options.seeds):
        looks = [_beside_exact(world, stream, 1000 * seed + stream, options.steps) for stream in range(options.streams)]
        gap, load, others, others_load = (np.concatenate(one).sum(axis=0) for one in zip(*looks, strict=True))
        row: Row = {"seed": seed, "other parts": float(others / others_load)}
        for place, what in enumerate(("belief", "exact mean", "exact median")):
            row |= {what: float(gap[place] / load), f"{what}, all": float((gap[place] + others) / (load + others_load))}
        yield row | {"all if the others were known": float(gap[2] / (load + others_load))}


def _beside_exact(world: World, stream: int, seed: int, num_steps: int) -> tuple[Floats, ...]:
    """Play a stream at random; return errors and loads of hidden switches, [D, 3] and [D], and of other parts, [D]."""
    batch = world.batch(1, seed=seed, is_believing=True)
    follower = ExactFilter(world.model)
    follower.forget(batch)
    episode = RackEpisode(batch, AtRandom(), stream=stream, seed=seed, observer=follower)
    rows: list[list[Any]] = [[], [], [], []]
    while not episode.is_over and len(rows[0]) < num_steps:
        refresh(world.model.arrays, batch.state, 0)
        truth, found, sd = batch.state.load[0], batch.belief.load[0], batch.belief.load_sd[0]
        part, mean, median = follower.loads(batch)
        counts = sd > 1e-6
        counts[part] = False
        told = np.abs(np.stack([found[part], mean, median]) - truth[part]).sum(axis=1)
        shown = (told, truth[part].sum(), np.abs(found - truth)[counts].sum(), truth[counts].sum())
        for kept, one in zip(rows, shown, strict=True):
            kept.append(one)
        episode.step()
    return tuple(np.array(one) for one in rows)


class AtRandom:
    """Decides at random among what is valid."""

    summary = "at random"
    reason: str | None = None

    def decider(self, batch: RackBatch, *, seed: int, random: np.ndarray) -> AtRandom:
        self.mask, self.rng = batch.mask[0], np.random.default_rng(seed)
        return self

    def decide(self) -> int:
        return int(self.rng.choice(np.flatnonzero(self.mask)))


_LEVELS = {"pcie-switch": (0.2, 0.8), "memory": (0.2, 0.6), "core": (0.3, 0.8)}
#: The other machine: what it is, and what is true of it.
_COUNTERS = CounterSpec(noise=0.5, theta=6.0)
_TRUE = BeliefParams(theta=6.0, noise=0.5, share=0.25, period_s=15.0, level=_LEVELS)


def calibrate(options: argparse.Namespace) -> Iterator[Row]:
    """Fit parameters to counters of another machine type, offline and online; the assumed ones are the defaults."""
    base = _case(options.case or "m1")
    foreign = ForeignLoad(_TRUE.share, _LEVELS, _TRUE.period_s)
    other = replace(base, stream=replace(base.stream, foreign=foreign), belief=BeliefParams())
    held_out = _with_counters(other.world(seed=None, num_instances=16))
    for seed in range(options.seeds):
        world = _with_counters(other.world(seed=seed, num_instances=NUM_RECORDED))
        recorder = CounterRecorder()
        _play(world, BeliefParams(), seed, recorder)
        begun = time.process_time()
        found = fit_belief(world.model, world.counters, recorder.recording(), BeliefParams(), seed=seed)
        seconds = time.process_time() - begun
        row: Row = {"seed": seed, "windows": len(recorder), "cpu_s": seconds}
        row |= {name: getattr(found, name) for name in ("theta", "noise", "floor", "share", "period_s")}
        for name, params in (("assumed", BeliefParams()), ("fitted", found), ("true", _TRUE)):
            judged = measure_belief(replace(held_out, belief=params), seed=seed, num_steps=options.steps, num_envs=8)
            row |= {name: judged["relative_error"], f"{name}_95": judged["coverage_95"]}
        learner = OnlineFit(world.model, world.counters, BeliefParams(), seed=seed)
        by_stream = _play(world, BeliefParams(), seed, learner)
        row |= {"online first": by_stream[0], "online last": by_stream[-1], "levels": list(found.level.items())}
        yield row


def _with_counters(world: World) -> World:
    return replace(world, counters=counters_of(world.model, _COUNTERS))


def _play(world: World, params: BeliefParams, seed: int, observer: Observer) -> list[float]:
    """Play all streams by a rule that believes; return the belief's error in each."""
    batch = RackBatch(world.model, world.streams, 1, seed=seed, counters=world.counters, params=params)
    errors = []
    for stream in range(len(world.streams.kernel)):
        episode = RackEpisode(batch, dispatcher_of("srpt-belief"), stream=stream, seed=seed, observer=observer)
        gap = total = 0.0
        while not episode.is_over:
            refresh(world.model.arrays, batch.state, 0)
            gap += float(np.abs(batch.belief.load[0] - batch.state.load[0]).sum())
            total += float(batch.state.load[0].sum())
            episode.step()
        errors.append(gap / max(total, 1e-9))
    return errors


BENCHMARKS: dict[str, Callable[[argparse.Namespace], Iterator[Row]]] = {
    "parts": parts,
    "calibrate": calibrate,
    "exact": exact,
}

if __name__ == "__main__":
    main()
