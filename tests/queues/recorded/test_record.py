"""The recorded past as a pseudo-strategy: known starts, exact means, and violations that are counted."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from recorded_logs import PROCS, conditions, jobs, log_under

import stretto
from stretto.core.pool import Pool
from stretto.core.trace import Trace
from stretto.errors import InvalidInput
from stretto.queues.recorded.occupancy import most_at_once, recorded_occupancy
from stretto.queues.recorded.record import RecordedResult, recorded_result
from stretto.queues.replay import replay


def recorded(trace: Trace, machine: int = 4) -> RecordedResult:
    found = replay(trace, machine, strategy="recorded")
    assert isinstance(found, RecordedResult)
    return found


def small(wait: list[float], **more: object) -> Trace:
    trace = Trace.of([0.0, 10.0, 20.0], [100.0, 50.0, 0.0], [2, 3, 1], [100.0, 60.0, 10.0])
    return replace(trace, wait_s=np.array(wait), **more)  # type: ignore[arg-type]


def test_jobs_start_when_they_did() -> None:
    found = recorded(small([0.0, 90.0, 7.0]))
    assert found.start_s.tolist() == [0.0, 100.0, 27.0]
    assert found.end_s.tolist() == [100.0, 150.0, 27.0]
    assert found.metrics.wait_s.mean == 97 / 3
    assert found.violations == {}
    assert any("1 job that never ran" in note for note in found.notes)


def test_the_mean_wait_is_that_of_the_column_to_all_digits() -> None:
    rng = np.random.default_rng(0)
    wait = rng.exponential(1e4, 10_000)
    wait[rng.random(10_000) < 0.1] = np.nan
    submit = np.sort(rng.random(10_000)) * 1e9
    trace = replace(Trace.of(submit, np.ones(10_000), np.ones(10_000, int), np.ones(10_000)), wait_s=wait)
    found = recorded(trace)
    assert found.metrics.wait_s.mean == float(np.mean(wait[~np.isnan(wait)]))
    assert found.num_dropped == int(np.count_nonzero(np.isnan(wait)))


def test_wide_jobs_count_and_break_a_rule() -> None:
    found = recorded(small([0.0, 90.0, 7.0]), machine=2)
    assert found.trace.num_jobs == 3
    assert found.violations == {"wider_than_machine": 1}
    assert found.violation_sentence is not None
    assert "wider than the machine" in found.violation_sentence


def test_moments_above_the_machine_are_counted_and_not_fatal() -> None:
    found = recorded(small([0.0, 5.0, 7.0]))  # 2 + 3 processors at once on 4
    assert found.violations == {"over_capacity": 1}
    assert (found.num_violations, found.most_procs) == (1, 5)


def test_starts_before_a_parents_end_and_before_submission_are_counted() -> None:
    pairs = {"parent": np.array([0], np.int32), "child": np.array([2], np.int32)}
    assert recorded(small([0.0, 90.0, 7.0], **pairs)).violations == {"before_parent_end": 1}
    assert recorded(small([-1.0, 90.0, 7.0])).violations == {"before_submission": 1}


def test_jobs_of_unknown_wait_are_left_out_with_a_note() -> None:
    found = recorded(small([0.0, np.nan, 7.0]))
    assert (found.trace.num_jobs, found.num_dropped) == (2, 1)
    assert any("1 job has no recorded wait" in note for note in found.notes)


@pytest.mark.parametrize("wait", [None, np.full(3, np.nan)])
def test_without_waits_there_is_no_record(wait: np.ndarray | None) -> None:
    with pytest.raises(InvalidInput, match="holds no recorded waits"):
        recorded(replace(small([0.0, 0.0, 0.0]), wait_s=wait))


def test_pools_are_one_machine_to_the_record() -> None:
    found = recorded_result(small([0.0, 90.0, 7.0]), (Pool("a", 1), Pool("b", 2)))
    assert found.pools[0].num_procs == 3


def test_the_record_of_a_replay_is_that_replay() -> None:
    trace = jobs(400)
    plain = replay(trace, PROCS)
    log = replace(trace, wait_s=plain.wait_s)
    found = stretto.replay(log, strategy="recorded")
    assert found.metrics.wait_s == plain.metrics.wait_s
    assert found.metrics.utilization == pytest.approx(plain.metrics.utilization)
    assert isinstance(found, RecordedResult)
    assert found.num_violations == 0


def test_what_runs_at_once_is_counted_by_group() -> None:
    log = log_under(jobs(500), conditions(jobs(500)))
    assert log.user is not None
    assert log.wait_s is not None
    everyone = np.ones(log.num_jobs, np.bool_)
    most = most_at_once(log, log.user, 8, everyone)
    start = log.submit_s + log.wait_s
    for user in range(8):
        mine = log.user == user
        slow = max(
            int(log.num_procs[mine & (start <= at) & (at < start + log.run_s)].sum()) for at in start[mine].tolist()
        )
        assert most[user] == slow
    past = recorded_occupancy(log)
    assert most_at_once(log, np.zeros(log.num_jobs, np.int32), 1, everyone)[0] == past.procs.value.max()
