"""The kernels equal the slow definition to the last bit."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from queue_cases import options, pools, traces

from stretto.core.pool import Pool
from stretto.core.trace import Trace
from stretto.queues.kernels.codes import DONE
from stretto.queues.reference.replay import replay_reference
from stretto.queues.replay import make_rules, replay, run_setup
from stretto.queues.setup import prepare

QUICK = settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
LONG = settings(max_examples=5000, deadline=None, suppress_health_check=list(HealthCheck))


def hold_equal(trace: Trace, machine: int | tuple[Pool, ...], chosen: dict[str, Any], seed: int) -> None:
    setup = prepare(trace, machine, make_rules(**chosen), seed)
    expected, status = replay_reference(setup)
    assert status == DONE
    found = run_setup(setup)
    for name in expected._fields[:6]:
        np.testing.assert_array_equal(getattr(found, name), getattr(expected, name), err_msg=name)
    # Sums over nodes: the fast path multiplies where the others add.
    np.testing.assert_allclose(found.node_s, expected.node_s, rtol=1e-12)
    np.testing.assert_allclose(found.usd, expected.usd, rtol=1e-12)


@QUICK
@given(traces(), pools(), options(), st.integers(0, 3))
def test_pools_equal_the_reference(trace: Trace, machine: tuple[Pool, ...], chosen: dict[str, Any], seed: int) -> None:
    hold_equal(trace, machine, chosen, seed)


@QUICK
@given(traces(plain=True), options())
def test_a_plain_machine_equals_the_reference(trace: Trace, chosen: dict[str, Any]) -> None:
    hold_equal(trace, 6, chosen, 0)


@QUICK
@given(traces(plain=True), options(), st.sampled_from(["none", "easy", "conservative"]))
def test_the_fast_kernels_equal_the_reference(trace: Trace, chosen: dict[str, Any], backfill: str) -> None:
    hold_equal(trace, 6, {**chosen, "backfill": backfill, "estimates": "user", "kill": False}, 0)


@st.composite
def outlived(draw: st.DrawFn) -> Trace:
    """Jobs that run for some time, many longer than they said."""
    trace = draw(traces(plain=True))
    said = draw(st.lists(st.sampled_from([0.0, 1.0, 2.0, 5.0, 40.0]), min_size=trace.num_jobs, max_size=trace.num_jobs))
    return replace(trace, estimate_s=np.array(said))


def hold_outlived(trace: Trace, chosen: dict[str, Any], backfill: str) -> None:
    chosen = {**chosen, "backfill": backfill, "estimates": "user", "kill": False}
    hold_equal(trace, (Pool("machine", 6),), chosen, 0)


@QUICK
@given(outlived(), options(), st.sampled_from(["none", "easy"]))
def test_the_fast_kernels_know_jobs_that_outlive_their_estimates(
    trace: Trace, chosen: dict[str, Any], backfill: str
) -> None:
    hold_outlived(trace, chosen, backfill)


def queues(seed: int, num_jobs: int) -> Trace:
    """Return a trace whose queue becomes long: hundreds of jobs wait, beyond the blocks that kernels look at."""
    rng = np.random.default_rng(seed)
    submit = np.sort(rng.integers(0, num_jobs // 2, num_jobs)).astype(float)
    run = rng.choice([1, 2, 5, 20, 90], num_jobs)
    slack = rng.choice([0, 0, 1, 3, 30], num_jobs)
    return Trace.of(submit, run, rng.integers(1, 7, num_jobs), run + slack)


@pytest.mark.parametrize("tie", ["batch", "one-event"])
@pytest.mark.parametrize("backfill", ["none", "easy", "conservative"])
@pytest.mark.parametrize("strategy", ["fcfs", "sjf", "f1", "wfp3", "unicep", "expansion"])
def test_long_queues_equal_the_general_kernel(strategy: str, backfill: str, tie: Any) -> None:
    """The general kernel, which small cases hold to the definition, is run by asking for what changes nothing."""
    trace = queues(7, 600)
    plain = replay(trace, 6, strategy=strategy, backfill=backfill, tie=tie)
    limit = replay(trace, 6, strategy=strategy, backfill=backfill, tie=tie, kill=True)
    assert plain.wait_s.max() > 1000
    np.testing.assert_array_equal(plain.start_s, limit.start_s)


@pytest.mark.long
@LONG
@given(outlived(), options(), st.sampled_from(["none", "easy"]))
def test_the_fast_kernels_know_jobs_that_outlive_their_estimates_long(
    trace: Trace, chosen: dict[str, Any], backfill: str
) -> None:
    hold_outlived(trace, chosen, backfill)


@pytest.mark.long
@LONG
@given(traces(plain=True), options(), st.sampled_from(["none", "easy", "conservative"]))
def test_the_fast_kernels_equal_the_reference_long(trace: Trace, chosen: dict[str, Any], backfill: str) -> None:
    hold_equal(trace, 6, {**chosen, "backfill": backfill, "estimates": "user", "kill": False}, 0)


@pytest.mark.long
@LONG
@given(traces(), pools(), options(), st.integers(0, 3))
def test_pools_equal_the_reference_long(
    trace: Trace, machine: tuple[Pool, ...], chosen: dict[str, Any], seed: int
) -> None:
    hold_equal(trace, machine, chosen, seed)


@pytest.mark.long
@LONG
@given(traces(plain=True), options())
def test_a_plain_machine_equals_the_reference_long(trace: Trace, chosen: dict[str, Any]) -> None:
    hold_equal(trace, 6, chosen, 0)
