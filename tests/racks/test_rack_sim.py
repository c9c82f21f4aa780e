"""The compiled rack simulator against its slow twin, and the published spreads."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from racks.rack_cases import random_action, small_rack, two_nics
from stretto.catalog import DISPATCHERS
from stretto.core.machine_presets import PRESETS, power8_m1, preset
from stretto.errors import InvalidInput, UnknownName
from stretto.racks.kernels.rates import fill_speeds
from stretto.racks.machine_work import KernelSpec, rack_model
from stretto.racks.reference import ReferenceRack, reference_speeds
from stretto.racks.rules import oracle, play
from stretto.racks.simulator import RackBatch


@settings(max_examples=200, deadline=None)
@given(
    st.lists(
        st.lists(st.sampled_from([0.0, 0.1, 0.3, 0.5, 0.9, 1.0, 1.7]), min_size=4, max_size=4), min_size=1, max_size=7
    )
)
def test_speeds_equal_the_slow_twin_and_leave_nothing_over(rows):
    demand = np.array(rows)
    speed, load = np.zeros(len(rows)), np.zeros(4)
    fill_speeds(demand, np.ones(len(rows), np.bool_), 0, 4, speed, load)
    twin = reference_speeds([{r: share for r, share in enumerate(row) if share > 0} for row in rows])
    np.testing.assert_allclose(speed, twin, atol=1e-9)
    assert np.all(load <= 1 + 1e-9)
    for row, pace in zip(demand, speed):  # work-conserving: who is not at full speed uses something that is full
        assert pace >= 1 - 1e-9 or np.any(load[row > 0] >= 1 - 1e-9)


@pytest.mark.parametrize("make", [small_rack, two_nics])
@pytest.mark.parametrize("seed", range(4))
def test_random_episodes_equal_the_slow_twin(make, seed):
    model, streams = make()
    instance = seed % len(streams.kernel)
    batch = RackBatch(model, streams, 1, seed=seed, is_believing=False)
    batch.start(np.array([instance]))
    twin = ReferenceRack(model, streams, instance)
    twin.to_decision(must_pass=False)
    rng = np.random.default_rng(seed)
    for _ in range(400):
        assert twin.valid() == np.flatnonzero(batch.mask[0]).tolist()
        assert batch.state.now_s[0] == pytest.approx(twin.now_s, abs=1e-6)
        action = random_action(batch.mask[0], rng)
        batch.step(np.array([action]))
        twin.act(action)
        is_over = twin.to_decision(must_pass=action == model.num_actions - 1)
        assert is_over == bool(batch.is_over[0])
        if is_over:
            break
    assert twin.is_over
    jobs = streams.job[instance]
    ends = [max(twin.end_s[t] for t in np.flatnonzero(jobs == job)) for job in range(streams.arrival_s.shape[1])]
    np.testing.assert_allclose(batch.ends_s[0], ends, atol=1e-6)


def _slowdown(kernel: str, processors: tuple[str, str]) -> float:
    """How much longer a kernel takes beside another of its kind, on named processors of one machine."""
    from stretto.core.machine import rack_of
    from stretto.racks.workloads.kernels import PAPER_KERNELS

    model = rack_model(rack_of([power8_m1()], "one"), PAPER_KERNELS)
    k = [spec.name for spec in model.kernels].index(kernel)
    places = [model.processors.index(f"m1/{name}") for name in processors]
    demand = model.arrays.demand[k, places]
    speed, load = np.zeros(2), np.zeros(demand.shape[1])
    fill_speeds(demand, np.ones(2, np.bool_), 0, demand.shape[1], speed, load)
    return float(1 / speed[0])


def test_the_published_spreads():
    model, _ = small_rack()
    row = model.arrays.duration_s[[spec.name for spec in model.kernels].index("pairhmm")]
    assert row.max() / row.min() == pytest.approx(100, rel=0.01)
    assert _slowdown("pairhmm", ("gpu0", "gpu2")) == pytest.approx(1.8)  # behind one switch
    assert _slowdown("pairhmm", ("gpu0", "gpu1")) == pytest.approx(1.0)  # behind two
    assert _slowdown("pairhmm", ("cpu0.0.0", "cpu0.0.1")) == pytest.approx(1.4)  # threads of a core


def test_indel_realignment_runs_on_cpus_only():
    model, _ = small_rack()
    row = model.arrays.duration_s[1]
    assert model.kernels[1].name == "indel-realignment"
    assert np.array_equal(np.isfinite(row), model.arrays.proc_kind == 0)


def test_same_seed_same_episode_and_environments_do_not_see_each_other():
    model, streams = small_rack()
    ends = []
    for num_envs in (1, 3):
        batch = RackBatch(model, streams, num_envs, seed=5)
        batch.start(np.zeros(num_envs, np.int64))
        for _ in range(60):
            batch.step(np.array([int(np.flatnonzero(mask)[0]) for mask in batch.mask]))
        ends.append(batch.readings.mean[0].copy())
    np.testing.assert_array_equal(*ends)


def test_the_oracle_is_never_worse_than_the_rule_it_rolls_out():
    model, streams = small_rack(num_instances=2, num_jobs=3)
    best = oracle(model, streams, width=4).sum(axis=1)
    for name in ("mct-true", "srpt-true"):
        assert np.all(best <= play(name, model, streams, seed=0).sum(axis=1) + 1e-6)


@pytest.mark.parametrize("name", sorted(set(DISPATCHERS) - {"symphony"}))
def test_every_rule_finishes_every_job(name):
    model, streams = small_rack(num_instances=2)
    flow = play(name, model, streams, seed=0)
    assert np.all(flow > 0)


def test_aware_beats_blind_and_random():
    model, streams = small_rack(num_instances=8, num_jobs=8)
    mean = {name: play(name, model, streams, seed=0).mean() for name in ("sparrow", "mct", "mct-true")}
    assert mean["mct-true"] < mean["mct"] < mean["sparrow"]


def test_presets_have_the_published_counts():
    rack = preset("paper-rack")
    kinds = [part.kind for machine in rack.machines for part in machine.parts]
    models = [part.model for machine in rack.machines for part in machine.parts]
    assert kinds.count("memory") == 12
    assert (models.count("k80"), models.count("k40"), kinds.count("fpga")) == (6, 2, 2)
    assert all(PRESETS[name]().num_processors > 0 for name in PRESETS)


def test_what_cannot_be_is_refused():
    with pytest.raises(UnknownName, match="paper-rack"):
        preset("paper-rak")
    with pytest.raises(InvalidInput, match="positive"):
        KernelSpec("k", {"cpu": 0.0})
    with pytest.raises(InvalidInput, match="no processor of the rack"):
        rack_model(preset("two-nics"), [KernelSpec("k", {"cpu": 1.0})], kinds=("nic",))
