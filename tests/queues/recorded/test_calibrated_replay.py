"""Planted conditions are found again, bring the replay nearer, and are told; where nothing was planted, nothing is."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from recorded_logs import DAY_S, PROCS, conditions, jobs, log_under

import stretto
from stretto.api.replay import measured_replay
from stretto.core.site import Partition, Site, SiteNode
from stretto.core.site_policy import Qos, SitePolicy
from stretto.core.trace import Trace
from stretto.errors import InvalidInput
from stretto.queues.evaluate import Evaluation
from stretto.queues.recorded.capacity import outages_of
from stretto.queues.recorded.departure import rank_correlation
from stretto.queues.recorded.occupancy import recorded_occupancy
from stretto.queues.replay import replay
from stretto.queues.validate import check_replay


def calibrated(log: Trace, **more: object) -> Evaluation:
    return measured_replay(log, calibrate=True, timed=False, **more)  # type: ignore[arg-type]


def is_nearer(found: Evaluation) -> bool:
    fit = found.calibration
    assert fit is not None
    return abs(fit.calibrated.mean_difference_s) < 0.5 * abs(fit.plain.mean_difference_s)


def test_a_log_of_the_plain_policy_needs_no_correction() -> None:
    trace = jobs()
    found = calibrated(log_under(trace, conditions(trace)))
    assert found.calibration is not None
    assert found.departure is not None
    assert found.calibration.applied == ()
    assert found.departure.waits.mean_difference_s == 0
    assert found.departure.waits.rank_correlation == pytest.approx(1.0)
    shown = {reason.kind for reason in found.departure.reasons}
    assert not shown & {"outages", "priorities", "partitions"}, "backfilling itself is no reason"


def test_planted_outages_are_found() -> None:
    trace = jobs(load=0.8)
    last = float(trace.submit_s[-1])
    begin = np.arange(1, 9) * last / 9
    time = np.sort(np.concatenate(([0.0], begin, begin + DAY_S / 2)))
    usable = np.array([PROCS, *([0, PROCS] * 8)], np.int64)
    log = log_under(trace, conditions(trace)._replace(time=time, usable=usable, full=usable))
    found = calibrated(log)
    assert found.calibration is not None
    assert found.departure is not None
    assert found.calibration.corrections.has_outages or found.calibration.corrections.window_s > 0
    assert is_nearer(found)
    told = outages_of(log, recorded_occupancy(log), PROCS)
    seen = 0
    for at in begin.tolist():
        inside = [one for one in told if one.begin_s < at + DAY_S / 2 and one.end_s > at]
        overlap = sum(min(one.end_s, at + DAY_S / 2) - max(one.begin_s, at) for one in inside)
        seen += overlap > 0.5 * DAY_S / 2
    assert seen >= 6, "an outage shows only where jobs wait and processors are idle"
    plain = measured_replay(log, timed=False)
    assert plain.departure is not None
    assert "outages" in {reason.kind for reason in plain.departure.reasons}


def test_a_smaller_machine_is_found() -> None:
    trace = jobs(load=0.6)
    log = log_under(trace, conditions(trace)._replace(usable=np.array([48], np.int64)))
    found = calibrated(log)
    assert is_nearer(found)
    assert found.calibration is not None
    assert found.calibration.applied


def test_a_planted_user_limit_is_told() -> None:
    """A log of a site whose QOS lets each user run 16 processors; no correction follows it, but the reasons name it."""
    trace = jobs(load=0.6)
    narrow = replace(
        trace,
        num_procs=np.minimum(trace.num_procs, 16),
        qos=np.zeros(trace.num_jobs, np.int32),
        meta=dict(trace.meta) | {"qos_names": ("normal",)},
    )
    policy = SitePolicy(qos=(Qos("normal", max_cpus_per_user=16),))
    site = Site("one", (SiteNode("n", 64),), (Partition("all", ("n",)),), policy=policy)
    played = replay(narrow, site)
    found = measured_replay(replace(narrow, wait_s=played.wait_s), 64, timed=False)
    assert found.departure is not None
    limits = [reason for reason in found.departure.reasons if reason.kind == "limits"]
    assert [reason.figures["most_procs_of_a_user"] for reason in limits] == [16]


@pytest.mark.parametrize("strategy", ["multifactor", "wfp3"])
def test_orders_that_change_with_the_wait_are_calibrated(strategy: str) -> None:
    """A log of ``multifactor`` on 48 of 64 processors: the calibrated replay of it comes nearer than the plain one."""
    trace = jobs(load=0.6)
    played = replay(replace(trace, num_procs=np.minimum(trace.num_procs, 48)), 48, strategy=strategy)
    log = replace(played.trace, wait_s=played.wait_s, max_procs=64)
    found = measured_replay(log, 64, strategy=strategy, calibrate=True, timed=False)
    assert is_nearer(found)
    assert found.calibration is not None
    assert abs(found.calibration.calibrated.mean_difference_s) < 0.5 * abs(found.calibration.plain.mean_difference_s)
    check_replay(log, 64, found.result)


def test_partitions_of_their_own_are_found() -> None:
    trace = jobs(load=0.7)
    part = (np.arange(trace.num_jobs) % 3 == 0).astype(np.int32)
    narrow = replace(trace, num_procs=np.minimum(trace.num_procs, 16), partition=part)
    wait = np.empty(trace.num_jobs)
    for value, size in ((0, 48), (1, 16)):
        rows = np.flatnonzero(part == value).astype(np.int32)
        own = narrow.take(rows)
        sizes = np.array([size], np.int64)
        log = log_under(own, conditions(own)._replace(usable=sizes, full=sizes))
        assert log.wait_s is not None
        wait[rows] = log.wait_s
    found = calibrated(replace(narrow, wait_s=wait))
    assert found.calibration is not None
    assert found.departure is not None
    assert found.calibration.corrections.split_by == "partition"
    assert is_nearer(found)


def test_what_is_fitted_is_judged_on_the_other_half() -> None:
    trace = jobs(load=0.6)
    found = calibrated(log_under(trace, conditions(trace)._replace(usable=np.array([48], np.int64))))
    assert found.calibration is not None
    first, second = found.calibration.first_half, found.calibration.held_out
    assert first is not None
    assert second is not None
    assert first.num_jobs + second.num_jobs == trace.num_jobs
    assert abs(second.calibrated_mean_wait_s - second.recorded_mean_wait_s) < abs(
        second.plain_mean_wait_s - second.recorded_mean_wait_s
    )
    text = found.to_json()
    assert isinstance(text["calibration"], dict)
    assert set(text["calibration"]) >= {"corrections", "applied", "plain", "calibrated", "first_half", "held_out"}


@pytest.mark.parametrize(
    ("rules", "reason"),
    [
        ({"strategy": "portfolio"}, "no fixed order"),
        ({"backfill": "conservative"}, "backfill none and easy"),
        ({"estimates": "last-two"}, "estimates user and perfect"),
        ({"kill": True}, "no kill"),
    ],
)
def test_what_cannot_be_calibrated_is_refused(rules: dict[str, object], reason: str) -> None:
    trace = jobs(200)
    log = log_under(trace, conditions(trace))
    with pytest.raises(InvalidInput, match=reason):
        stretto.replay(log, calibrate=True, **rules)  # type: ignore[arg-type]


def test_without_waits_nothing_is_calibrated() -> None:
    with pytest.raises(InvalidInput, match="nothing to calibrate against"):
        stretto.replay(jobs(200), calibrate=True)


def test_few_jobs_are_replayed_plainly() -> None:
    trace = jobs(12)
    log = replace(trace, wait_s=np.full(trace.num_jobs, 1e6))
    found = calibrated(log)
    assert found.calibration is not None
    assert found.calibration.applied == ()


def test_ranks_of_ties_are_their_mean() -> None:
    from scipy.stats import spearmanr

    rng = np.random.default_rng(3)
    first, second = rng.integers(0, 9, 300).astype(float), rng.integers(0, 9, 300).astype(float)
    assert rank_correlation(first, second) == pytest.approx(float(spearmanr(first, second)[0]))
    assert rank_correlation(first, np.zeros(300)) == 0.0
