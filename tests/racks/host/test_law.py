"""The contention law: fitted from durations, with its prior, its bounds and its memory."""

from __future__ import annotations

import math

import numpy as np
import pytest

from stretto.errors import InvalidInput
from stretto.racks.host.law import MAX_CATEGORIES, ContentionLaw, LawValues, TaskEvidence
from stretto.racks.host.loads import CoreLoads

TRUE = LawValues(0.75, 0.0, np.array([1.0, 1.0]), np.array([0.05, 1.07]))
NAMES = ("compute", "copy")


def seen(kind: int, beside: int | None, foreign: float = 0.0, noise: float = 1.0, **changes: object) -> TaskEvidence:
    truth = LawValues(TRUE.coupling, foreign, TRUE.scale, TRUE.demand)
    busy, total = (0.0, 0.0) if beside is None else (1.0, float(TRUE.demand[beside]))
    cpu_s = 0.1 * truth.slowdown(kind, busy, total) * noise
    near = {} if beside is None else {NAMES[beside]: 1.0}
    return TaskEvidence(NAMES[kind], cpu_s, 0.1, busy, near, **changes)  # type: ignore[arg-type]


def test_the_law_of_a_host_is_found_from_durations():
    rng, law = np.random.default_rng(0), ContentionLaw(is_measured=True)
    for _ in range(150):
        beside = int(rng.integers(3))
        law.observe(seen(int(rng.integers(2)), None if beside == 2 else beside, noise=math.exp(rng.normal(0, 0.1))))
    found = law.values()
    for kind in range(2):
        for beside in range(2):
            k, j = law.index(NAMES[kind]), law.index(NAMES[beside])
            expected = TRUE.slowdown(kind, 1.0, float(TRUE.demand[beside]))
            assert found.slowdown(k, 1.0, float(found.demand[j])) == pytest.approx(expected, rel=0.12)


def test_a_task_slower_than_its_neighbors_explain_tells_of_foreign_demand_which_fades():
    law = ContentionLaw(is_measured=True)
    for _ in range(30):
        for kind, beside in ((0, 1), (1, 0), (1, 1), (0, None), (1, None)):
            law.observe(seen(kind, beside))
    assert law.values().foreign < 0.1
    for number in range(6):
        law.advance(10.0 + 0.1 * number)
        law.observe(seen(1, None, foreign=0.8))
    assert law.values().foreign > 0.4
    law.advance(60.0)
    assert law.values().foreign < 0.05


def test_a_running_task_counts_only_when_it_is_late():
    law = ContentionLaw(is_measured=True)
    law.observe(seen(1, None))
    before = law.values()
    law.observe(TaskEvidence("copy", 0.01, 0.1, 0.0, {}, is_over=False))
    assert law.values().foreign == before.foreign
    law.observe(TaskEvidence("copy", 0.5, 0.1, 0.0, {}, is_over=False))
    assert law.values().foreign > before.foreign
    assert law.num_seen == [1]


@pytest.mark.parametrize("cpu_s", [0.0, -1.0, math.nan, math.inf])
def test_absurd_durations_are_left_out(cpu_s):
    law = ContentionLaw()
    law.observe(TaskEvidence("copy", cpu_s, 1.0, 0.0))
    assert law.num_seen == []


def test_nothing_leaves_its_bounds_whatever_is_seen():
    rng, law = np.random.default_rng(1), ContentionLaw()
    for step in range(400):
        law.advance(float(step))
        beside = {f"kind{rng.integers(5)}": float(rng.uniform(0, 3))}
        cpu_s = float(np.exp(rng.normal(0, 3)))
        law.observe(TaskEvidence(f"kind{rng.integers(5)}", cpu_s, 1.0, float(rng.uniform(0, 2)), beside))
        found = law.values()
        assert 0 <= found.coupling <= 4
        assert 0 <= found.foreign <= 4
        assert np.all((found.demand >= 0) & (found.demand <= 4) & np.isfinite(found.scale))


def test_what_was_learned_survives_a_file_and_is_forgotten_in_time():
    law = ContentionLaw()
    for _ in range(40):
        law.observe(seen(1, 1))
        law.observe(seen(1, None))
    again = ContentionLaw()
    again.start_from(law.to_json())
    assert again.to_json() == law.to_json()
    again.advance(1e6)
    assert again.values().demand[0] == pytest.approx(again.params.memory_demand, abs=0.01)


@pytest.mark.parametrize(
    "broken", [{}, {"coupling": "x"}, {"coupling": 99.0, "coupling_sd": 1.0, "categories": {}}, {"coupling": None}]
)
def test_a_broken_record_is_refused(broken):
    with pytest.raises(InvalidInput):
        ContentionLaw().start_from(broken)


def test_many_kinds_share_the_last_place():
    law = ContentionLaw()
    places = {law.index(f"kind{number}") for number in range(100)}
    assert places == set(range(MAX_CATEGORIES))


def test_a_load_lasts_as_long_as_its_phases():
    short, long = CoreLoads(1), CoreLoads(1)
    for step in range(4000):
        now_s = step * 0.05
        short.take_in(np.array([0.5 * (int(now_s) % 2)]), 0.05)
        long.take_in(np.array([0.5 * (int(now_s / 20) % 2)]), 0.05)
    assert short.lasting_s[0] == pytest.approx(1.0, abs=0.3)
    assert long.lasting_s[0] > 10
    assert long.forecast(1.0)[0] == pytest.approx(long.now[0], abs=0.05)
    assert abs(short.forecast(20.0)[0] - short.mean[0]) < 0.05


def test_a_core_that_was_not_read_keeps_its_load():
    loads = CoreLoads(2)
    loads.take_in(np.array([0.5, 0.2]), 1.0)
    loads.take_in(np.array([np.nan, 0.2]), 1.0)
    assert loads.now[0] == 0.5
    assert np.isnan(loads.raw[0])
