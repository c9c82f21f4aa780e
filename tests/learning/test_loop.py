"""The training loop: when it ends, what it keeps, and that it resumes as if it had never stopped."""

from __future__ import annotations

import os
import signal
import sys
import time
from dataclasses import astuple, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from learning.pretend_trainer import BATCH, PretendTrainer
from stretto.api.train import learns_on
from stretto.core.cluster import Cluster
from stretto.core.problem import Problem
from stretto.errors import InvalidInput, MissingExtra, UnknownName
from stretto.files.checkpoint import InvalidCheckpoint, load, save
from stretto.graphs.training import PlanTrainer, completed, fingerprint
from stretto.learning import loop
from stretto.learning.loop import TrainingRun, ctrl_c_stops
from stretto.learning.trainer import TrainingRow, TrainingSpec
from stretto.workloads import generate


@pytest.fixture(scope="module")
def problem() -> Problem:
    return Problem.of(generate("cholesky", num_tiles=4), Cluster.parse("cpu:2,gpu:1"))


def make(problem: Problem, path: Path | None = None, **spec: Any) -> TrainingRun[TrainingRow]:
    return TrainingRun(PretendTrainer(problem, TrainingSpec(**spec)), algorithm="pretend", path=path)


def timeless(rows: Any) -> list[Any]:
    return [tuple(str(value) for value in astuple(replace(row, seconds=0.0))) for row in rows]


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
    run = make(problem, episodes=20, seed=3)
    result = run.train()
    outcome, judged = run.trainer.result("pretend", result.seconds), run.trainer.judge()
    assert judged.trained == outcome.makespan_s == pytest.approx(result.rows[-1].best_s)
    assert set(judged.others) == {"heft", "etf", "peft", "critical-path"}
    assert outcome.lower_bound_s <= outcome.makespan_s
    assert outcome.to_json()["policy"] == "pretend"


def test_it_continues_as_if_it_had_never_stopped(problem: Problem, tmp_path: Path) -> None:
    first = make(problem, episodes=40, seed=2)
    whole = first.train()
    path = tmp_path / "c.npz"
    make(problem, path, episodes=16, seed=2).train()
    second = make(problem, path, episodes=40, seed=2)
    second.resume()
    result = second.train()
    assert timeless(result.rows) == timeless(whole.rows)
    assert result.num_new == 6
    for part in ("assignment", "order"):
        plans = [getattr(run.trainer.best_plan(), part) for run in (first, second)]
        assert np.array_equal(*plans)
    assert result.rows[4].seconds > result.rows[3].seconds  # the clock goes on


def test_long_trainings_are_saved_on_the_way(problem: Problem, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loop, "CHECKPOINT_EVERY_S", 0.0)
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
    with pytest.raises(InvalidCheckpoint, match=r"\[algorithm\].*'pretend', this training 'other'"):
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
    with pytest.raises(InvalidInput, match="before its first step"):
        make(problem).train(is_stopped=lambda: True)


def test_fingerprints_tell_problems_apart(problem: Problem) -> None:
    same = Problem.of(generate("cholesky", num_tiles=4), Cluster.parse("cpu:2,gpu:1"))
    assert fingerprint(same) == fingerprint(problem)
    for cluster in ("cpu:2,gpu:1x2.0", "cpu:2,gpu:1@2GB/s"):
        assert fingerprint(Problem.of(problem.graph, Cluster.parse(cluster))) != fingerprint(problem)


def test_algorithms_are_found_by_name() -> None:
    with pytest.raises(UnknownName, match="did you mean doppler"):
        learns_on("dopler")


def test_without_jax_the_message_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    ours = [name for name in sys.modules if name.startswith("stretto.graphs.doppler.")]
    for name in [*ours, *(name for name in sys.modules if name.partition(".")[0] in ("jax", "optax"))]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "jax", None)
    with pytest.raises(MissingExtra, match=r"training doppler needs jax.*stretto\[learn\]"):
        learns_on("doppler")


@pytest.mark.parametrize("wrong", [{"seed": -1}, {"episodes": 0}, {"time_limit_s": 0.0}])
def test_wrong_specs_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput):
        TrainingSpec(**wrong)


def test_the_first_step_may_run_elsewhere_and_checkpoints_are_told(problem: Problem, tmp_path: Path) -> None:
    first: list[int] = []
    saved: list[Path] = []

    def first_step(step: Any) -> Any:
        first.append(1)
        return step()

    run = TrainingRun(
        PretendTrainer(problem, TrainingSpec(episodes=12)),
        algorithm="pretend",
        path=tmp_path / "c.npz",
        on_saved=saved.append,
    )
    run.train(first_step=first_step)
    assert (len(first), saved) == (1, [tmp_path / "c.npz"])


def test_ctrl_c_ends_a_training_after_its_step(problem: Problem) -> None:
    before = signal.getsignal(signal.SIGINT)
    with ctrl_c_stops() as is_stopped:
        result = make(problem).train(on_row=lambda row: os.kill(os.getpid(), signal.SIGINT), is_stopped=is_stopped)
        with pytest.raises(KeyboardInterrupt):
            os.kill(os.getpid(), signal.SIGINT)
    assert result.is_interrupted
    assert result.num_episodes == BATCH
    assert signal.getsignal(signal.SIGINT) is before


def test_a_plugin_that_does_not_judge_itself_is_completed(problem: Problem) -> None:
    class Early:
        """As plugins were before trainers judged themselves."""

        def __init__(self, problem: Problem, spec: TrainingSpec) -> None:
            self.inner = PretendTrainer(problem, spec)
            self.step, self.best_plan = self.inner.step, self.inner.best_plan

    spec = TrainingSpec(seed=4)
    trainer: Any = completed(Early(problem, spec), problem, spec)  # type: ignore[arg-type]
    assert isinstance(trainer, PlanTrainer)
    row = trainer.step()
    assert trainer.judge().trained == pytest.approx(row.best_s)
    assert trainer.identity == {"problem": fingerprint(problem)}
