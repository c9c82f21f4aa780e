"""Environments refuse settings and actions that make no sense, with the field."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

pytest.importorskip("gymnasium")
from stretto.core.site import Partition, Site, SiteNode
from stretto.core.trace import Trace
from stretto.errors import StrettoError
from stretto.queues.env.queue_env import QueueEnv, QueueVectorEnv

SITE = Site("s", (SiteNode("n", 2),), (Partition("p", ("n",)),))
TRACE = Trace.of([0, 1, 2, 3], [5, 5, 5, 5], [1, 2, 1, 2])


@pytest.mark.parametrize(
    ("params", "words"),
    [
        ({"num_jobs": 0}, "num_jobs: 0 must be at least 1"),
        ({"num_visible": 0}, "num_visible: 0 must be at least 1"),
        ({"reward": "gold"}, "unknown reward 'gold'"),
        ({"backfill": "wild"}, "unknown backfill of an environment: 'wild'"),
        ({"interval_s": -1.0}, "interval_s: -1.0 must not be negative"),
        ({"num_procs": SITE}, "num_procs: is a number of processors; give a site as site="),
        ({"site": SITE}, "num_procs: a site has its own processors"),
        ({"slack": "1h"}, "slack: is for backfill 'promise'"),
        ({"num_procs": None, "site": SITE, "backfill": "easy"}, "backfill: on a site, jobs are picked with none"),
    ],
)
def test_wrong_settings_are_refused(params: dict[str, Any], words: str) -> None:
    with pytest.raises(StrettoError) as caught:
        QueueEnv(trace=TRACE, **{"num_procs": 2, "num_jobs": 2, **params})
    assert words in str(caught.value)


def test_wrong_resets_and_actions_are_refused() -> None:
    env = QueueEnv(trace=TRACE, num_procs=2, num_jobs=2)
    with pytest.raises(StrettoError, match="'colour' is unknown; known: first"):
        env.reset(options={"colour": 1})
    observation, _ = env.reset(seed=1)
    assert env.action_masks().tolist() == observation["mask"].astype(bool).tolist()
    assert env.action_masks().dtype == np.bool_


def test_several_environments_share_a_seed_and_take_an_action_each() -> None:
    with pytest.raises(StrettoError, match="must be at least 1"):
        QueueVectorEnv(0, trace=TRACE, num_procs=2, num_jobs=2)
    envs = QueueVectorEnv(2, trace=TRACE, num_procs=2, num_jobs=2)
    with pytest.raises(StrettoError, match="one seed is for all environments"):
        envs.reset(seed=[1, 2])
    envs.reset(seed=1)
    with pytest.raises(StrettoError, match="is not in"):
        envs.step(np.array([10_000, 0]))
