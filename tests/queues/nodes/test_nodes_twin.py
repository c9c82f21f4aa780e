"""The compiled replay on nodes equals its definition, and no node is ever used beyond what it has."""

from __future__ import annotations

import numpy as np
import pytest
from tests.queues.nodes.random_sites import random_jobs, random_site

from stretto.errors import InvalidInput, UnknownName
from stretto.queues.kernels import codes
from stretto.queues.kernels.codes import MULTIFACTOR
from stretto.queues.nodes.reference.replay import NodeReference
from stretto.queues.nodes.replay import to_result
from stretto.queues.nodes.rules import node_rules
from stretto.queues.nodes.run import NodeReplay
from stretto.queues.nodes.setup import prepare_nodes
from stretto.queues.validate import check_replay

#: FCFS, shortest, largest area, expansion factor, multifactor: static and dynamic orders.
STRATEGIES = (0, 1, 4, 20, MULTIFACTOR)
BACKFILLS = (codes.EASY, codes.EASY, codes.CONSERVATIVE, codes.NONE)


def check_case(seed: int) -> bool:
    """Compare one random case; False where no job can run at all."""
    rng = np.random.default_rng(seed)
    site = random_site(rng)
    jobs = random_jobs(rng, site)
    strategy, backfill = int(rng.choice(STRATEGIES)), int(rng.choice(BACKFILLS))
    try:
        setup = prepare_nodes(jobs, site, kill=bool(rng.random() < 0.3), perfect=bool(rng.random() < 0.2))
    except (InvalidInput, UnknownName):
        return False
    rules = node_rules(setup, strategy, backfill)
    replay = NodeReplay(setup, len(rules.above))
    if rng.random() < 0.3:  # a replay that is paused goes on as if it had not been
        replay.run(rules, float(rng.integers(0, 60)))
    replay.run(rules)
    result = replay.result()
    twin = NodeReference(setup, rules)
    twin.run()
    assert result.start_s.tolist() == twin.start, f"seed {seed}"
    assert result.end_s.tolist() == twin.end, f"seed {seed}"
    assert result.ready_s.tolist() == twin.ready, f"seed {seed}"
    order = setup.site_arrays.order
    for job, places in enumerate(twin.places):
        first, last = result.place_ptr[job], result.place_ptr[job + 1]
        found = list(zip(result.shape[first:last], result.node[first:last], result.tasks[first:last], strict=True))
        assert found == [(place.shape, order[place.node], place.tasks) for place in places], f"seed {seed}, job {job}"
    check_replay(jobs, site, to_result(setup, result, {}))
    return True


def test_kernel_and_definition_agree() -> None:
    assert sum(check_case(seed) for seed in range(400)) > 300


@pytest.mark.long
def test_kernel_and_definition_agree_on_ten_thousand_cases() -> None:
    assert sum(check_case(seed) for seed in range(1000, 14_000)) >= 10_000
