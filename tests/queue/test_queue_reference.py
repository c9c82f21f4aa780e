"""The kernels equal the slow definition to the last bit."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from queue_cases import options, pools, traces

from stretto.domain.pool import Pool
from stretto.domain.trace import Trace
from stretto.kernels.queue_codes import DONE
from stretto.sim.queue import make_rules, run_setup
from stretto.sim.queue_reference import replay_reference
from stretto.sim.queue_setup import prepare

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
