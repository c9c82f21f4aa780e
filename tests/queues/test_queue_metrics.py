"""Figures of a replay, computed by hand."""

from __future__ import annotations

import numpy as np
import pytest

from stretto.core.pool import Pool
from stretto.core.trace import Trace
from stretto.queues.metrics import measure
from stretto.queues.replay import replay


def test_figures_of_three_jobs() -> None:
    # P=2: A 0-10, B waits 10 and runs 10-12, C (one processor) waits 11 and runs 12-52. User 7 has A and B.
    users = np.array([7, 7, 9], np.int32)
    trace = Trace.of([0, 0, 1], [10, 2, 40], [2, 2, 1], user=users, deadline_s=np.array([10.0, 11.0, np.inf]))
    figures = measure(replay(trace, 2))
    assert figures.wait_s.mean == 7.0
    assert figures.wait_s.max == 11.0
    assert figures.wait_s.p50 == 10.0
    assert figures.flow_s.max == 51.0
    assert figures.makespan_s == 52.0
    # Slowdowns: 1, 12/2 = 6, 51/40; bounded: 1, 12/10, 51/40.
    assert figures.slowdown.mean == pytest.approx((1 + 6 + 51 / 40) / 3)
    assert figures.bounded_slowdown.mean == pytest.approx((1 + 1.2 + 51 / 40) / 3)
    assert figures.utilization == pytest.approx((20 + 4 + 40) / (2 * 52))
    # Users: 1.1 and 1.275.
    assert figures.fairness.jain == pytest.approx(2.375**2 / (2 * (1.1**2 + 1.275**2)))
    assert figures.fairness.max_over_mean == pytest.approx(1.275 / 1.1875)
    assert figures.num_late == 1
    assert figures.num_killed == 0


def test_an_elastic_pool_is_paid_by_the_begun_hour() -> None:
    # One node is always up: 0 to the end. The job needs two: the second is ordered at 0, up at 120, gone at the end.
    # It runs 120-4120. Paid: the base node 4120 s -> 2 hours, the other 4000 s -> 2 hours, at 3 USD.
    pool = Pool("cloud", 4, price_usd_per_hour=3.0, billing_s=3600.0, provision_s=120.0, min_nodes=1)
    result = replay(Trace.of([0], [4000], [2]), (pool,))
    assert result.start_s.tolist() == [120.0]
    assert result.billed_node_s.tolist() == [4 * 3600.0]
    assert measure(result).cost_usd == pytest.approx(12.0)


def test_idle_nodes_go() -> None:
    # The job runs 0-10 on two nodes without provisioning; both are idle from 10 and gone at 15. The second job
    # comes at 100 and needs one new node, 100-110. Paid by the second: 2 x 15 + 10.
    pool = Pool("cloud", 2, price_usd_per_hour=3600.0, min_nodes=0, idle_shutdown_s=5.0)
    result = replay(Trace.of([0, 100], [10, 10], [2, 1]), (pool,))
    assert result.billed_node_s.tolist() == [40.0]
    assert result.cost_usd.tolist() == pytest.approx([40.0])
