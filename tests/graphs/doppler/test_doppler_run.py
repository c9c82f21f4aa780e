"""Doppler's training behind the common contract: it steps, stops, and resumes bit for bit."""

from __future__ import annotations

from dataclasses import astuple
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from stretto.core.cluster import Cluster
from stretto.core.problem import Problem
from stretto.errors import InvalidInput
from stretto.files.checkpoint import InvalidCheckpoint, load
from stretto.graphs.workloads.tensors.chainmm import chainmm
from stretto.learning.loop import TrainingRun
from stretto.learning.trainer import TrainingRow, TrainingSpec

pytest.importorskip("jax")
pytest.importorskip("optax")

from stretto.graphs.doppler.run import DopplerRun


@pytest.fixture(scope="module")
def problem() -> Problem:
    return Problem.of(chainmm(paper_costs=True), Cluster.parse("gpu:4"))


def make(problem: Problem, path: Path | None = None, **spec: Any) -> TrainingRun[TrainingRow]:
    from stretto.graphs.doppler.trainer import Learning

    how = Learning(batch=8, episodes=64, elites=2)
    return TrainingRun(DopplerRun(problem, TrainingSpec(**spec), learning=how), algorithm="doppler", path=path)


def steps(run: TrainingRun[TrainingRow], count: int) -> list[tuple[str, ...]]:
    rows = [run.trainer.step() for _ in range(count)]
    run.rows += rows
    return [tuple(map(repr, astuple(row))) for row in rows]


@pytest.mark.parametrize("start", ["scratch", "generalist"])
def test_it_resumes_bit_for_bit(problem: Problem, tmp_path: Path, start: str) -> None:
    """Whether there was a teacher is known without being told where the training once started."""
    whole = make(problem, seed=3, start=start)
    news = steps(whole, 6)
    first = make(problem, tmp_path / "c.npz", seed=3, start=start)
    assert steps(first, 3) == news[:3]
    first.save()
    second = make(problem, tmp_path / "c.npz", seed=3)
    second.resume()
    assert steps(second, 3) == news[3:]
    mine, theirs = second.trainer.state(), whole.trainer.state()
    assert mine[1] == theirs[1]
    assert {name: value.tobytes() for name, value in mine[0].items()} == {
        name: value.tobytes() for name, value in theirs[0].items()
    }
    assert {row.stage for row in second.rows} == ({"imitation", "simulator"} if start == "scratch" else {"simulator"})


@pytest.mark.parametrize(("start", "is_cooled"), [("scratch", False), ("generalist", True)])
def test_weights_from_elsewhere_choose_more_and_more_surely(problem: Problem, start: str, is_cooled: bool) -> None:

    trainer = DopplerRun(problem, TrainingSpec(episodes=64, start=start)).trainer
    first = trainer.sampling().temperature
    trainer.episode = 64
    assert first == 1.0
    assert (trainer.sampling().temperature < 0.5) == is_cooled


def test_a_plan_of_episodes_is_kept_with_the_training(problem: Problem, tmp_path: Path) -> None:
    path = tmp_path / "c.npz"
    first = make(problem, path, episodes=64)
    steps(first, 2)
    first.save()
    second = make(problem, path)
    second.resume()
    assert 64 <= second.train().num_episodes < 80  # a batch is never cut
    third = TrainingRun(DopplerRun(problem, TrainingSpec(episodes=80)), algorithm="doppler", path=path)
    third.resume()
    assert 80 <= third.train().num_episodes < 120


def test_the_best_plan_is_what_it_says(problem: Problem) -> None:
    from stretto.graphs.simulator import simulate

    run = make(problem, episodes=64)
    result = run.train()
    assert 64 <= result.num_episodes < 80
    assert simulate(problem, run.trainer.best_plan()).makespan_s == pytest.approx(result.rows[-1].best_s, rel=1e-9)
    assert all(np.isfinite(row.mean_s) and row.mean_s >= row.best_s for row in result.rows)


def test_weights_of_a_checkpoint_start_another_training(problem: Problem, tmp_path: Path) -> None:
    path = tmp_path / "c.npz"
    run = make(problem, path, seed=1)
    steps(run, 2)
    run.save()
    other = DopplerRun(problem, TrainingSpec(seed=9, start=str(path)))
    assert other.state()[1]["trainer"]["counters"]["episode"] == 0
    arrays, _ = load(path)
    for name, value in other.state()[0].items():
        if name.startswith("params/"):
            assert np.array_equal(value, arrays[name])


def test_on_another_graph_the_tables_begin_empty(problem: Problem, tmp_path: Path) -> None:
    path = tmp_path / "c.npz"
    run = make(problem, path, seed=1)
    steps(run, 3)
    run.save()
    other = Problem.of(chainmm(paper_costs=True, inner_parts=1), Cluster.parse("gpu:2"))
    arrays, _ = DopplerRun(other, TrainingSpec(seed=2, start=str(path))).state()
    saved, _ = load(path)
    assert np.any(saved["params/plc_table"])
    assert arrays["params/plc_table"].shape == (other.num_tasks, 2)
    assert not np.any(arrays["params/plc_table"])
    assert np.array_equal(arrays["params/plc_in"], saved["params/plc_in"])


def test_a_network_of_another_shape_is_refused(problem: Problem, tmp_path: Path) -> None:
    from stretto.graphs.doppler.settings import DopplerSettings

    path = tmp_path / "c.npz"
    run = make(problem, path)
    steps(run, 1)
    run.save()
    with pytest.raises(InvalidCheckpoint, match=r"params/.*another shape"):
        DopplerRun(problem, TrainingSpec(start=str(path)), settings=DopplerSettings(hidden=16))


@pytest.mark.parametrize("start", [None, "generalist"])
def test_a_training_starts_as_the_generalist_decides(problem: Problem, start: str | None) -> None:
    """Before the first update its greedy plan is that of the first linear policy."""
    from stretto.graphs.doppler.generalist import load_policies
    from stretto.graphs.doppler.proposals import played

    run = DopplerRun(problem, TrainingSpec(seed=5, start=start))
    assert run.trainer.greedy_plan().makespan_s == played(problem, load_policies()[:1]).makespan_s
    scratch = DopplerRun(problem, TrainingSpec(seed=5, start="scratch"))
    assert np.any(scratch.state()[0]["params/sel_out"])


def test_a_start_that_is_no_checkpoint_is_refused(problem: Problem, tmp_path: Path) -> None:
    with pytest.raises(InvalidCheckpoint, match=r"none\.npz"):
        DopplerRun(problem, TrainingSpec(start=str(tmp_path / "none.npz")))


def test_projects_are_refused(data_dir: Path) -> None:
    import zipfile

    from stretto.files.document import Document
    from stretto.files.graphs.psplib import FORMAT

    with zipfile.ZipFile(data_dir / "taskgraphs" / "psplib-j30.sm.zip") as archive:
        graph = FORMAT.read(Document("j301_1.sm", archive.read("j301_1.sm")))
    with pytest.raises(InvalidInput, match="renewable resources"):
        DopplerRun(Problem.of(graph, Cluster.parse("shop:1")), TrainingSpec())
