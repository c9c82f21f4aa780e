"""The generalist's training: it lowers the cost on its problems, and a further policy complements the first."""

from __future__ import annotations

import numpy as np
from research.doppler.evolve import FAMILIES, costs, evolve, first_policy, training_problems

from stretto import catalog
from stretto.graphs.doppler.linear import NUM_WEIGHTS


def test_every_family_is_in_the_catalog() -> None:
    assert {name for name, _ in FAMILIES} <= set(catalog.WORKLOADS)


def test_evolution_lowers_the_cost_and_repeats() -> None:
    problems = training_problems(3, families=FAMILIES[8:11])
    told: list[str] = []
    found = evolve([], problems, problems, 10, 0, told.append)
    assert costs(found, problems).mean() < costs(first_policy(), problems).mean()
    assert len(told) == 1
    assert np.array_equal(found, evolve([], problems, problems, 10, 0, told.append))


def test_a_further_policy_starts_from_the_first_and_is_another_one() -> None:
    problems = training_problems(4, families=FAMILIES[7:9])
    second = evolve([first_policy()], problems, problems, 3, 0, lambda _: None)
    assert second.shape == (NUM_WEIGHTS,)
    assert not np.array_equal(second, first_policy())
