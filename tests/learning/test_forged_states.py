"""A training that is taken up again refuses a state that is not its own, in one line and before it changes anything."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

pytest.importorskip("jax")

from stretto.core.cluster import Cluster
from stretto.core.problem import Problem
from stretto.core.trace import Trace
from stretto.errors import InvalidInput
from stretto.graphs.doppler.settings import DopplerSettings
from stretto.graphs.doppler.trainer import DopplerTrainer, Learning
from stretto.graphs.workloads.random_dag import random_dag
from stretto.learning.trainer import TrainingSpec
from stretto.queues.mars.candidates import smith_net
from stretto.queues.mars.trainer import MarsTrainer
from stretto.queues.mars.windows import draw_windows
from stretto.queues.promises.slack import Slack
from stretto.racks.symphony.cases import case
from stretto.racks.symphony.run import SymphonyRun

State = tuple[dict[str, Any], dict[str, Any]]


def _doppler() -> DopplerTrainer:
    problem = Problem.of(random_dag(num_tasks=12, seed=3), Cluster.parse("gpu:3"))
    return DopplerTrainer(problem, DopplerSettings(hidden=4, head=4, rounds=1), Learning(batch=4, elites=2), seed=5)


def _mars() -> MarsTrainer:
    rng = np.random.default_rng(0)
    trace = Trace.of(np.arange(400.0), rng.integers(1, 90, 400), rng.integers(1, 9, 400))
    windows = draw_windows(trace, 8, 4, 50, rng)
    return MarsTrainer(windows[1:], windows[:1], smith_net(), seed=3, slack=Slack(60.0), population=4)


@pytest.fixture(scope="module")
def doppler_state() -> State:
    trainer = _doppler()
    arrays, meta = trainer.state()
    order = np.tile(trainer.problem.arrays.topo, (2, 1))
    arrays |= {"elites/order": order, "elites/assignment": np.zeros_like(order), "elites/makespan_s": np.ones(2)}
    return arrays, meta


def _with(arrays: dict[str, Any], name: str, change: Callable[[Any], Any] | None) -> dict[str, Any]:
    changed = dict(arrays)
    if change is None:
        del changed[name]
    else:
        changed[name] = change(np.array(arrays[name]))
    return changed


CHANGES: list[Callable[[Any], Any] | None] = [
    None,
    lambda a: a[:-1] if a.ndim else np.zeros(3),
    lambda a: a.astype(np.complex64),
    lambda a: a.astype(np.int8) if a.dtype.kind == "f" else a.astype(np.float32),
    lambda a: np.full(a.shape, np.nan),
]


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("name", ["params/enc_in", "elites/assignment", "elites/makespan_s"])
def test_doppler(name: str, change: Callable[[Any], Any] | None, doppler_state: State) -> None:
    arrays, meta = doppler_state
    trainer = _doppler()
    trainer.restore(arrays, meta)
    before = trainer.state()[0]
    with pytest.raises(InvalidInput, match=name):
        trainer.restore(_with(arrays, name, change), meta)
    after = trainer.state()[0]
    assert all(np.array_equal(before[key], after[key]) for key in before)


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("elites/order", np.zeros((2, 12), np.int32), "every task once"),
        ("elites/order", np.full((2, 12), 12, np.int32), "out of range 0..11"),
        ("elites/assignment", np.full((2, 12), 3, np.int32), "out of range 0..2"),
        ("elites/assignment", np.full((2, 12), -1, np.int32), "out of range 0..2"),
        ("elites/order", np.int32(3), "shape"),
    ],
)
def test_plans_of_doppler_are_plans_of_the_problem(name: str, value: Any, words: str, doppler_state: State) -> None:
    """Kernels index by them and do not check."""
    arrays, meta = doppler_state
    with pytest.raises(InvalidInput, match=words):
        _doppler().restore({**arrays, name: value}, meta)


def test_counters_of_doppler_are_numbers(doppler_state: State) -> None:
    arrays, meta = doppler_state
    with pytest.raises(InvalidInput, match="episode"):
        _doppler().restore(arrays, {**meta, "counters": {**meta["counters"], "episode": "x"}})


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("name", ["best", "order", "cma.covariance", "cma.numbers"])
def test_mars(name: str, change: Callable[[Any], Any] | None) -> None:
    arrays, meta = _mars().state()
    with pytest.raises(InvalidInput, match=name.removeprefix("cma.")):
        _mars().restore(_with(arrays, name, change), meta)


def test_symphony() -> None:
    named = case("two-nics")
    run = SymphonyRun(replace(named, stream=replace(named.stream, num_jobs=4)), TrainingSpec(seed=1))
    arrays, meta = run.state()
    run.restore(arrays, meta)
    for name in ("best.direct", "start.hidden", "search.weights", "search.second", "numbers"):
        for change in CHANGES:
            with pytest.raises(InvalidInput, match=name.removeprefix("search.")):
                run.restore(_with(arrays, name, change), meta)
    with pytest.raises(InvalidInput, match="iteration"):
        run.restore(arrays, {**meta, "iteration": None})
    with pytest.raises(InvalidInput, match="other weights"):
        run.restore({**arrays, "start.direct": arrays["start.direct"] + 1.0}, meta)


def test_places_of_mars_are_windows() -> None:
    arrays, meta = _mars().state()
    with pytest.raises(InvalidInput, match="order"):
        _mars().restore({**arrays, "order": np.full_like(arrays["order"], 99)}, meta)
    with pytest.raises(InvalidInput, match="place"):
        _mars().restore(arrays, {**meta, "place": -1})
