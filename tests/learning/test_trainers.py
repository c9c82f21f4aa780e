"""Every trainer of the catalog keeps the protocol: it steps, saves and restores exactly, and judges itself."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("optax")

from stretto import catalog
from stretto.api import train
from stretto.core.cluster import Cluster
from stretto.core.problem import Problem
from stretto.errors import InvalidInput
from stretto.files import checkpoint
from stretto.graphs.workloads.generate import generate
from stretto.learning.loop import TrainingRun
from stretto.learning.trainer import StepRow, Trainer, TrainingSpec
from stretto.queues.workloads.lublin import lublin
from stretto.racks.symphony.cases import case
from stretto.registry import resolve

Make = Callable[[str, TrainingSpec], Trainer[StepRow]]


def _rack() -> Any:
    named = case("two-nics")
    return replace(named, stream=replace(named.stream, num_jobs=4))


#: Something small for each kind of source.
SUBJECTS: dict[str, Callable[[], Any]] = {
    "graph": lambda: Problem.of(generate("cholesky", num_tiles=3), Cluster.parse("cpu:2,gpu:1")),
    "queue": lambda: (lublin(num_jobs=240, num_procs=32, load=0.9, seed=5), 32),
    "rack": _rack,
}


def make(name: str, spec: TrainingSpec) -> Trainer[StepRow]:
    trainer: Any = resolve(catalog.TRAINERS[name])
    made: Trainer[StepRow] = trainer(SUBJECTS[trainer.learns_on](), spec)
    return made


def timeless(row: StepRow) -> str:
    """Return a row without what the clock decides."""
    return str([value for name, value in row.to_json().items() if name not in ("seconds", "jobs_per_s")])


@pytest.fixture(scope="module", params=list(catalog.TRAINERS))
def trained(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """A training with three steps: after two of them the state was saved."""
    name: str = request.param
    trainer = make(name, TrainingSpec(seed=1))
    run = TrainingRun(trainer, algorithm=name, path=tmp_path_factory.mktemp(name) / "state.npz")
    seen: list[StepRow] = []
    run.train(on_row=seen.append, is_stopped=lambda: len(seen) == 2)
    return name, run, trainer.step()


def test_steps_report_their_number_and_figures(trained: Any) -> None:
    _, run, last = trained
    rows = [*run.rows, last]
    assert [row.episode for row in rows] == sorted({row.episode for row in rows})
    assert all(isinstance(row, run.trainer.row_type) for row in rows)
    assert last.figures
    assert set(last.to_json()) == {last.unit, "seconds", *last.figures, *(["stage"] if hasattr(last, "stage") else [])}


def test_a_restored_state_gives_the_same_next_step(trained: Any) -> None:
    name, run, expected = trained
    again = TrainingRun(make(name, TrainingSpec(seed=1)), algorithm=name, path=run.path)
    again.resume()
    assert str(again.rows) == str(run.rows)  # as text: NaN is not equal to itself
    assert timeless(again.trainer.step()) == timeless(expected)
    mine, theirs = again.trainer.state(), run.trainer.state()
    assert mine[1] == theirs[1]
    assert {key: value.tobytes() for key, value in mine[0].items()} == {
        key: value.tobytes() for key, value in theirs[0].items()
    }


def test_held_out_figures_say_whether_training_helped(trained: Any) -> None:
    _, run, _ = trained
    judged = run.trainer.judge()
    figures = [judged.trained, judged.untrained, *judged.others.values(), *judged.uses.values()]
    assert all(math.isfinite(value) and value > 0 for value in figures)
    assert judged.is_better == (judged.trained < judged.untrained)
    assert judged.others[judged.best_other] == min(judged.others.values())
    assert judged.measure


def test_weights_are_arrays_by_name(trained: Any) -> None:
    _, run, _ = trained
    weights = run.trainer.weights()
    assert weights
    assert all(isinstance(value, np.ndarray) and value.dtype.kind == "f" for value in weights.values())


def test_a_checkpoint_of_another_training_is_refused(trained: Any) -> None:
    name, run, _ = trained
    with pytest.raises(InvalidInput, match=r"state\.npz \[algorithm\]"):
        TrainingRun(make(name, TrainingSpec(seed=1)), algorithm="other", path=run.path).resume()


def test_checkpoints_of_earlier_versions_are_resumed(tmp_path: Path) -> None:
    """Before all families shared one loop, mars kept no rows and named itself differently."""
    name = "mars"
    path, first = tmp_path / "old.npz", make(name, TrainingSpec(seed=2))
    first.step()
    arrays, meta = first.state()
    about = {"kind": "mars-training", **first.identity, "state": meta}
    checkpoint.save(path, arrays, about)
    run = TrainingRun(make(name, TrainingSpec(seed=2)), algorithm=name, path=path)
    run.resume()
    assert run.rows == []
    assert timeless(run.trainer.step()) == timeless(first.step())


#: Figures of the second step with seed 1, as they were before all families shared one loop: equal to the last bit on
#: one machine, another CPU rounds differently. MARS was built anew since, and begins with the
#: networks of its file; Doppler begins with linear policies.
KNOWN = {
    "doppler": {"best_s": 0.0331446492537477, "mean_s": 0.0390197887577216, "entropy": 0.4032438397407532},
}


@pytest.mark.parametrize("name", KNOWN)
def test_the_same_seed_gives_the_rows_of_earlier_versions(name: str) -> None:
    trainer = make(name, TrainingSpec(seed=1, num_threads=1))
    trainer.step()
    figures = trainer.step().figures
    assert {key: figures[key] for key in KNOWN[name]} == pytest.approx(KNOWN[name], rel=1e-4)


def test_python_trains_on_objects_and_keeps_files(tmp_path: Path) -> None:
    seen: list[StepRow] = []
    trace = lublin(num_jobs=240, num_procs=32, load=0.9, seed=5)
    state = tmp_path / "state.npz"
    first = train("mars", trace, episodes=2, checkpoint=state, on_row=seen.append)
    assert [row.episode for row in seen] == [row.episode for row in first.rows] == [1, 2]
    again = train("mars", trace, episodes=3, checkpoint=state, resume=True)
    assert [row.episode for row in again.rows] == [1, 2, 3]
    assert list(again.to_pandas()["generation"]) == [1, 2, 3]
    again.save(tmp_path / "nets.npz")
    assert checkpoint.load(tmp_path / "nets.npz")[1]["kind"] == "mars"
    assert again.judged.uses["mars"] > 0
    with pytest.raises(InvalidInput, match="--cluster"):
        train("mars", trace, "cpu:2")
    with pytest.raises(InvalidInput, match=r"state\.npz.*--resume"):
        train("mars", trace, episodes=3, checkpoint=state)
