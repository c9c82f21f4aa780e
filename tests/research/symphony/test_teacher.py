"""Imitation of a rule: what the rule would do becomes what the policy does."""

from __future__ import annotations

import pytest

pytest.importorskip("optax")

from research.symphony.actor_critic import SymphonyTrainer
from research.symphony.recurrent_settings import A2c, NetSettings
from research.symphony.teacher import imitate

from racks.rack_cases import two_nics
from stretto.racks.symphony.cases import World


def test_a_policy_chooses_as_the_rule_more_often_than_before() -> None:
    model, streams = two_nics()
    trainer = SymphonyTrainer(World.of(model, streams), NetSettings("belief", 8, 8, guide=0.0), A2c(num_envs=8), seed=0)
    first = imitate(trainer, 1)
    assert imitate(trainer, 25) > max(first, 0.6)
