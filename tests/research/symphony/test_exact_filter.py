"""The exact filter: Bayes' rule on all combinations of levels, and switches that nothing tells apart stay alike."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from research.symphony.exact_filter import ExactFilter, groups_below_roots

from stretto.core.machine import rack_of
from stretto.core.machine_presets import hgx8
from stretto.racks.kernels.evidence import NUM_VALUES, fill_evidence, likelihood
from stretto.racks.kernels.foreign import NUM_STATES, predict_outcome
from stretto.racks.machine_work import rack_model
from stretto.racks.simulator import RackBatch
from stretto.racks.workloads.graphs import PAPER_MIX
from stretto.racks.workloads.kernels import PAPER_KERNELS
from stretto.racks.workloads.streams import StreamSpec, streams_of


def _idle_batch(level: dict[str, float]) -> RackBatch:
    """A rack without tasks whose counters were read while some sources were at a level, free of noise."""
    model = rack_model(rack_of([hgx8(num_cores=1, num_threads=1)], "hgx8"), PAPER_KERNELS)
    streams = streams_of(model, PAPER_MIX, StreamSpec(num_jobs=1), num_instances=1, seed=0)
    batch = RackBatch(model, streams, 1, seed=0)
    batch.state.task[:] = -1
    load = np.zeros(len(model.resources) + len(model.processors))
    levels = np.array([level.get(name, 0.0) for name in model.sources])
    predict_outcome(model.arrays, batch.state, 0, 0, levels, load)
    batch.readings.mean[0] = load[batch.counters.resource] ** batch.counters.exponent
    batch.readings.num[0] = batch.counters.num_samples
    batch.readings.sd[0] = batch.readings.mean[0]
    return batch


def test_memory_and_two_switches_are_below_each_root() -> None:
    batch = _idle_batch({})
    names = [[batch.model.sources[f] for f in group] for group in groups_below_roots(batch.model)]
    assert names == [["hgx8/mem0", "hgx8/switch0", "hgx8/switch1"], ["hgx8/mem1", "hgx8/switch2", "hgx8/switch3"]]


def test_one_window_is_bayes_rule() -> None:
    batch = _idle_batch({"hgx8/switch0": 0.7, "hgx8/mem0": 0.2})
    model, belief, group = batch.model, batch.belief, groups_below_roots(batch.model)[0]
    found = ExactFilter(model)
    found.forget(batch)
    found(batch, 1e-9)
    table, is_read = np.zeros((len(model.resources), NUM_VALUES)), np.zeros(len(model.resources), np.bool_)
    fill_evidence(model.arrays, batch.counters, 0, 0, batch.readings, batch.params, table, is_read)
    level, load = (belief.chance[0] * belief.level).sum(axis=1), np.zeros(len(model.resources) + len(model.processors))
    expected = np.zeros(found.joint.shape[1:])
    for states in product(range(NUM_STATES), repeat=3):
        level[group] = belief.level[group, states]
        predict_outcome(model.arrays, batch.state, 0, 0, level, load)
        chance = np.prod(belief.prior[group, states])
        for r in (model.resources.index(name) for name in ("hgx8/mem0", "hgx8/root0")):
            chance *= likelihood(table[r], load[r])
        expected[states] = chance
    np.testing.assert_allclose(found.joint[0], expected / expected.sum(), atol=1e-4)


def test_switches_that_nothing_tells_apart_stay_alike_however_often_their_root_is_read() -> None:
    batch = _idle_batch({"hgx8/switch0": 0.7})
    found = ExactFilter(batch.model)
    found.forget(batch)
    for _ in range(30):
        found(batch, 1.0)
    joint = found.joint[0]
    np.testing.assert_allclose(joint, joint.transpose(0, 2, 1), atol=1e-9)
    only_one = joint[:, 0, 1:].sum() + joint[:, 1:, 0].sum()
    assert only_one > 0.9
    part, mean, _ = found.loads(batch)
    assert [batch.model.resources[r] for r in part[:2]] == ["hgx8/switch0", "hgx8/switch1"]
    assert mean[0] == pytest.approx(mean[1]) == pytest.approx(0.35, abs=0.07)
