"""Driving a training: when it ends, what it keeps, and that it continues as if it had never stopped."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from graphs.pretend_trainer import BATCH, PretendTrainer
from stretto.core.cluster import Cluster
from stretto.core.problem import Problem
from stretto.errors import InvalidInput, MissingExtra, UnknownName
from stretto.files.checkpoint import InvalidCheckpoint, load, save
from stretto.graphs import training as training_run
from stretto.graphs.training import TrainingRun, judged, trainer_named
from stretto.learning.trainer import TrainingRow, TrainingSpec, fingerprint
from stretto.workloads import generate


@pytest.fixture(scope="module")
def problem() -> Problem:
    return Problem.of(generate("cholesky", num_tiles=4), Cluster.parse("cpu:2,gpu:1"))


def make(problem: Problem, path: Path | None = None, **spec: Any) -> TrainingRun:
    return TrainingRun(PretendTrainer(problem, TrainingSpec(**spec)), problem, algorithm="pretend", path=path)


def timeless(rows: Any) -> list[Any]:
    return [tuple(str(value) for value in row._replace(seconds=0.0)) for row in rows]


def test_episodes_end_it(problem: Problem) -> None:
    seen: list[TrainingRow] = []
    result = make(problem, episodes=5 * BATCH).train(on_row=seen.append)
    assert result.num_episodes == 5 * BATCH
    assert tuple(seen) == result.rows
    assert not result.is_interrupted
    assert [row.best_s for row in seen] == sorted((row.best_s for row in seen), reverse=True)
    assert 0 < seen[0].seconds <= seen[-1].seconds == result.seconds


def test_time_ends_it(problem: Problem) -> None:
    begin = time.perf_counter()
    result = make(problem).train(time_limit_s=0.2)
    assert 0.2 <= result.seconds <= time.perf_counter() - begin
    assert not result.is_interrupted


def test_a_wish_ends_it_after_the_step(problem: Problem, tmp_path: Path) -> None:
    seen: list[TrainingRow] = []
    run = make(problem, tmp_path / "c.npz")
    result = run.train(on_row=seen.append, is_stopped=lambda: len(seen) == 3)
    assert result.is_interrupted
    assert result.num_episodes == 3 * BATCH
    assert load(tmp_path / "c.npz")[1]["trainer"]["episode"] == 3 * BATCH


def test_the_best_plan_is_judged(problem: Problem) -> None:
    result = make(problem, episodes=20).train()
    outcome = judged(problem, "pretend", result, seed=3)
    assert outcome.makespan_s == pytest.approx(result.rows[-1].best_s)
    assert outcome.lower_bound_s <= outcome.makespan_s
    assert outcome.to_json()["policy"] == "pretend"


def test_it_continues_as_if_it_had_never_stopped(problem: Problem, tmp_path: Path) -> None:
    whole = make(problem, episodes=40, seed=2).train()
    path = tmp_path / "c.npz"
    make(problem, path, episodes=16, seed=2).train()
    second = make(problem, path, episodes=40, seed=2)
    second.resume()
    result = second.train()
    assert timeless(result.rows) == timeless(whole.rows)
    assert np.array_equal(result.plan.assignment, whole.plan.assignment)
    assert np.array_equal(result.plan.order, whole.plan.order)
    assert result.rows[4].seconds > result.rows[3].seconds  # the clock goes on


def test_long_trainings_are_saved_on_the_way(problem: Problem, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(training_run, "CHECKPOINT_EVERY_S", 0.0)
    path, seen = tmp_path / "c.npz", []

    def look(row: TrainingRow) -> None:
        seen.append(load(path)[1]["trainer"]["episode"] if path.exists() else 0)

    make(problem, path, episodes=3 * BATCH).train(on_row=look)
    assert seen == [0, BATCH, 2 * BATCH]


def test_a_checkpoint_of_something_else_is_refused(problem: Problem, tmp_path: Path) -> None:
    path = tmp_path / "c.npz"
    make(problem, path, episodes=4).train()
    other = Problem.of(problem.graph, Cluster.parse("cpu:3"))
    with pytest.raises(InvalidCheckpoint, match=r"c\.npz \[problem\]"):
        make(other, path).resume()
    run = make(problem, path)
    run.algorithm = "other"
    with pytest.raises(InvalidCheckpoint, match=r"\[algorithm\].*'pretend', not 'other'"):
        run.resume()


@pytest.mark.parametrize("missing", ["run/rows", "order"])
def test_a_checkpoint_without_its_parts_is_refused(problem: Problem, tmp_path: Path, missing: str) -> None:
    path = tmp_path / "c.npz"
    make(problem, path, episodes=4).train()
    arrays, meta = load(path)
    del arrays[missing]
    save(path, arrays, meta)
    with pytest.raises(InvalidCheckpoint, match=f"does not hold this training.*{missing}"):
        make(problem, path).resume()


def test_stopped_before_it_began_there_is_no_plan(problem: Problem) -> None:
    with pytest.raises(InvalidInput, match="before its first episode"):
        make(problem).train(is_stopped=lambda: True)


def test_fingerprints_tell_problems_apart(problem: Problem) -> None:
    same = Problem.of(generate("cholesky", num_tiles=4), Cluster.parse("cpu:2,gpu:1"))
    assert fingerprint(same) == fingerprint(problem)
    for cluster in ("cpu:2,gpu:1x2.0", "cpu:2,gpu:1@2GB/s"):
        assert fingerprint(Problem.of(problem.graph, Cluster.parse(cluster))) != fingerprint(problem)


def test_algorithms_are_found_by_name(problem: Problem) -> None:
    with pytest.raises(UnknownName, match="did you mean doppler"):
        trainer_named("dopler", problem, TrainingSpec())


def test_without_jax_the_message_says_what_to_install(problem: Problem, monkeypatch: pytest.MonkeyPatch) -> None:
    ours = [name for name in sys.modules if name.startswith("stretto.graphs.doppler.")]
    for name in [*ours, *(name for name in sys.modules if name.partition(".")[0] in ("jax", "optax"))]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "jax", None)
    with pytest.raises(MissingExtra, match=r"training doppler needs jax.*stretto\[learn\]"):
        trainer_named("doppler", problem, TrainingSpec())


@pytest.mark.parametrize("wrong", [{"seed": -1}, {"episodes": 0}, {"time_limit_s": 0.0}])
def test_wrong_specs_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput):
        TrainingSpec(**wrong)
