"""Shared weights learn from several problems, the same way every time."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("jax")

from research.doppler.generalist import FAMILIES, Course, Generalist, TrainingProblem, training_problems

from stretto.graphs.doppler.generalist import load_weights
from stretto.graphs.doppler.settings import DopplerSettings

SETTINGS = DopplerSettings(tables=False, hidden=8, head=8, rounds=1)
COURSE = Course(visits=6, batch=4, elites=2, teacher_moves=200, max_steps=24)


@pytest.fixture(scope="module")
def few() -> list[TrainingProblem]:
    made = training_problems(1, repeats=1)
    assert len(made) == 2 * len(FAMILIES)
    return [one for one in made if one.name in ("lu on 4", "map-reduce on 4")]


def trained(few: list[TrainingProblem]) -> Generalist:
    made = Generalist(few, COURSE, SETTINGS, seed=2)
    made.teach()
    for _ in range(COURSE.visits):
        made.visit()
    return made


def test_weights_move_and_runs_repeat(few: list[TrainingProblem], tmp_path: Path) -> None:
    fresh = Generalist(few, COURSE, SETTINGS, seed=2)
    first, second = trained(few), trained(few)
    assert any(not np.array_equal(first.params[name], fresh.params[name]) for name in fresh.params)
    for name in first.params:
        assert np.array_equal(first.params[name], second.params[name]), name
    first.write(tmp_path / "weights.npz")
    read = load_weights(tmp_path / "weights.npz")
    assert read.settings == SETTINGS
    for name, value in read.params.items():
        assert np.array_equal(value, first.params[name])


def test_teachers_plans_are_known_before_the_first_visit(few: list[TrainingProblem]) -> None:
    made = Generalist(few, COURSE, SETTINGS)
    made.teach()
    assert all(trainer.elites for trainer in made.trainers)
    assert made.greedy_ratio() >= 1.0
