"""Symphony's belief: its error by part, calibration on another machine, the paper's headline, one change at a time.

    python benchmarks/symphony_belief.py parts                  # error by part, with and without progress
    python benchmarks/symphony_belief.py calibrate --case m1    # parameters fitted to recorded counters
    python benchmarks/symphony_belief.py headline --case m1     # iterations to 30 % loss, belief against RNN
    python benchmarks/symphony_belief.py isolated               # one change at a time, two NICs

*parts*: held-out streams, decisions at random, mean absolute error over mean utilization. *calibrate*: a rack whose
counters and foreign load differ from what is assumed; error on held-out streams with the assumed parameters, with those
fitted to the counters of six other streams, and with the true ones. *headline*: fresh weights; the first of two looks
in a row with a loss of at most 30 % against the oracle; a policy that does not get there counts with the last
iteration, so that the ratio is a bound. *isolated*: completion time on held-out streams over that of the full system
after as many iterations; intervals are bootstraps over seeds.
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
from research.symphony.actor_critic import HeldOut, SymphonyTrainer
from research.symphony.belief_learning import METHODS, GradientSettings, learn_theta
from research.symphony.calibration import look_around, measure_belief
from research.symphony.recurrent_settings import NetSettings, a2c_of
from research.symphony.teacher import imitate

from stretto.core.csr import Floats
from stretto.racks.belief.fit import OnlineFit, fit_belief
from stretto.racks.belief.recording import CounterRecorder, Observer
from stretto.racks.dispatch import RackEpisode, dispatcher_of
from stretto.racks.kernels.time import refresh
from stretto.racks.params import BeliefParams, CounterSpec, counters_of
from stretto.racks.rules import oracle
from stretto.racks.simulator import RackBatch
from stretto.racks.symphony.cases import Case, World, case, rack_case
from stretto.racks.workloads.streams import ForeignLoad

Row = dict[str, Any]
LOSS = 0.3
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
    parser.add_argument("--iterations", type=int, default=40)
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


def _middle(values: list[float]) -> list[float]:
    """Return the mean between the ends of its 95 % bootstrap interval."""
    drawn = np.random.default_rng(0).choice(values, (4000, len(values))).mean(axis=1)
    low, high = np.quantile(drawn, (0.025, 0.975))
    return [float(low), float(np.mean(values)), float(high)]


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


def headline(options: argparse.Namespace) -> Iterator[Row]:
    """Train the belief-fed policy and the model-free one of the same size until their loss is 30 %."""
    names = options.case.split(",") if options.case else ("m1", "small-rack", "two-nics")
    for name in names:
        held_out = _case(name).world(seed=None, num_instances=options.streams)
        best = float(oracle(held_out.model, held_out.streams).sum())
        ratios = []
        for seed in range(options.seeds):
            at = {}
            for variant in ("belief", "rnn"):
                at[variant], seconds = _iterations_to(name, held_out, best, variant, seed, options.iterations)
                yield {"case": name, "seed": seed, "variant": variant, "iterations": at[variant], "cpu_s": seconds}
            ratios.append(min(at["belief"], options.iterations) / max(min(at["rnn"], options.iterations), 1))
        drawn = np.median(np.random.default_rng(0).choice(ratios, (4000, len(ratios))), axis=1)
        interval = [float(np.quantile(drawn, 0.025)), float(np.median(ratios)), float(np.quantile(drawn, 0.975))]
        yield {"case": name, "seed": "all", "variant": "median ratio", "iterations": interval, "cpu_s": 0.0}


def _iterations_to(name: str, held_out: World, best: float, variant: str, seed: int, most: int) -> tuple[float, float]:
    net = NetSettings(variant, guide=0.0)
    world = _case(name).world(seed=seed, num_instances=256)
    trainer = SymphonyTrainer(world, net, a2c_of(name), seed=seed)
    judge = HeldOut(held_out, trainer.shape, net)
    begun, was_there = time.process_time(), False
    for iteration in range(most + 1):
        is_there = 1.0 - best / float(np.nansum(judge.flow_s(trainer.params))) <= LOSS
        if is_there and was_there:
            return iteration - 1, time.process_time() - begun
        was_there = is_there
        trainer.step()
    return float("inf"), time.process_time() - begun


def isolated(options: argparse.Namespace) -> Iterator[Row]:
    """Change one thing at a time, and train as many iterations from the same seeds."""
    name = options.case or "two-nics"
    held_out = _case(name).world(seed=None, num_instances=options.streams)
    seeds = range(options.seeds)
    full = [_trained(name, held_out, "belief", seed, options.iterations) for seed in seeds]
    changes = {
        "raw counters in place of the belief": "counters",
        "dense layers in place of the topology": "dense",
        "both (the model-free policy)": "rnn",
    }
    yield {"change": "none (belief, topology, actor-critic)", "ratio [95 %]": [1.0], "final": _middle(full)}
    for what, variant in changes.items():
        found = [_trained(name, held_out, variant, seed, options.iterations) for seed in seeds]
        yield {"change": what, "ratio [95 %]": _ratios(found, full), "final": _middle(found)}
    taught = [_taught(name, held_out, seed, options.iterations) for seed in seeds]
    yield {
        "change": "imitation of srpt with beliefs in place of actor-critic",
        "ratio [95 %]": _ratios(taught, full),
    } | {"final": _middle(taught)}
    by = {
        method: [learn_theta(GradientSettings(method), seed=seed, num_updates=100) for seed in seeds]
        for method in METHODS
    }
    load = {method: [one.load for one in found] for method, found in by.items()}
    cost = {method: [1e3 * one.seconds_per_update for one in found] for method, found in by.items()}
    exact, sampled = METHODS[1], METHODS[0]
    what = "exact gradient in place of the sampling gradient: load of the chosen path"
    yield {"change": what, "ratio [95 %]": _ratios(load[exact], load[sampled]), "final": _middle(load[exact])}
    what = "the same: CPU ms per update"
    yield {"change": what, "ratio [95 %]": _ratios(cost[exact], cost[sampled]), "final": _middle(cost[exact])}


def _ratios(found: list[float], full: list[float]) -> list[float]:
    return _middle([one / other for one, other in zip(found, full, strict=True)])


def _trained(name: str, held_out: World, variant: str, seed: int, num_iterations: int) -> float:
    """Return the mean completion time after training: the mean of three looks at the end."""
    net = NetSettings(variant, guide=0.0)
    trainer = SymphonyTrainer(_case(name).world(seed=seed, num_instances=256), net, a2c_of(name), seed=seed)
    judge = HeldOut(held_out, trainer.shape, net)
    looks: list[Floats] = []
    for iteration in range(num_iterations):
        trainer.step()
        if iteration >= num_iterations - 3:
            looks.append(judge.flow_s(trainer.params))
    return float(np.nanmean(looks))


def _taught(name: str, held_out: World, seed: int, num_iterations: int) -> float:
    """Return the mean completion time after imitation of a rule for as many batches as there were updates."""
    net = NetSettings("belief", guide=0.0)
    a2c = a2c_of(name)
    trainer = SymphonyTrainer(_case(name).world(seed=seed, num_instances=256), net, a2c, seed=seed)
    imitate(trainer, a2c.epochs * num_iterations)
    return float(np.nanmean(HeldOut(held_out, trainer.shape, net).flow_s(trainer.params)))


BENCHMARKS: dict[str, Callable[[argparse.Namespace], Iterator[Row]]] = {
    "parts": parts,
    "calibrate": calibrate,
    "headline": headline,
    "isolated": isolated,
}

if __name__ == "__main__":
    main()
