"""Imitation of a teacher: what the teacher would do becomes what the policy does."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("optax")

from research.symphony.actor_critic import SymphonyTrainer
from research.symphony.recurrent_settings import A2c, NetSettings
from research.symphony.teacher import imitate, lookahead_advice

from racks.rack_cases import two_nics
from stretto.core.kernels.rng import seeded
from stretto.racks.kernels.rules import SRPT
from stretto.racks.rules import oracle
from stretto.racks.simulator import RackBatch
from stretto.racks.symphony.cases import World


def test_a_policy_chooses_as_the_rule_more_often_than_before() -> None:
    model, streams = two_nics()
    trainer = SymphonyTrainer(World.of(model, streams), NetSettings("belief", 8, 8, guide=0.0), A2c(num_envs=8), seed=0)
    first = imitate(trainer, 1)
    assert imitate(trainer, 25) > max(first, 0.6)


def test_who_follows_the_search_is_as_fast_as_the_oracle_with_its_order_and_leaves_the_racks_alone() -> None:
    model, streams = two_nics()
    batch = RackBatch(model, streams, 1, seed=0, is_believing=False)
    batch.start(np.zeros(1, np.int64))
    expected = oracle(
        model, streams._replace(**{name: one[:1] for name, one in streams._asdict().items()}), orders=(SRPT,)
    )
    while not batch.is_over[0]:
        before = [one.copy() for one in batch.state]
        told = lookahead_advice(batch, np.stack([seeded(0, 0)]))
        assert all(np.array_equal(one, other, equal_nan=True) for one, other in zip(before, batch.state))
        batch.step(told)
    assert (batch.ends_s[0] - streams.arrival_s[0]).sum() == pytest.approx(expected.sum(), rel=0.05)
