"""Limits of QOS: per user, per account, for all, per job; what they leave out, and that the validator sees a breach."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import stretto
from stretto.core.request import JobRequest, ResourceRequest
from stretto.core.site import Partition, Site, SiteNode
from stretto.core.site_policy import Qos, SitePolicy
from stretto.core.trace import Trace
from stretto.errors import InvalidInput, InvalidPlan
from stretto.queues.nodes.slurm_model.replay import replay_like_slurm
from stretto.queues.replay import replay
from stretto.queues.validate import check_replay

ONE = ResourceRequest()
TWO = ResourceRequest(num_tasks=2)
GPU = ResourceRequest(gpus_per_node={"a100": 1})


def site(**limits: Any) -> Site:
    """Ten processors, four GPUs, and a QOS with some limits; QOS ``free`` has none."""
    qos = (Qos("normal", **limits), Qos("free"))
    nodes = (SiteNode("n1", 10, gpus={"a100": 4}),)
    return Site("one", nodes, (Partition("all", ("n1",)),), policy=SitePolicy(qos=qos))


def jobs(*rows: tuple[str, str, str, JobRequest]) -> Trace:
    """Return jobs of 100 s, submitted at once, of (user, account, QOS, request)."""
    names = [sorted({row[k] for row in rows}) for k in range(3)]
    numbers = [np.array([names[k].index(row[k]) for row in rows], np.int32) for k in range(3)]
    n = len(rows)
    return Trace.of(
        np.zeros(n), np.full(n, 100.0), np.ones(n), np.full(n, 100.0),
        user=numbers[0], account=numbers[1], qos=numbers[2],
        request=np.arange(n, dtype=np.int32), requests=tuple(row[3] for row in rows),
        meta={"user_names": names[0], "account_names": names[1], "qos_names": names[2]},
    )  # fmt: skip


ROWS = [("ann", "phys", "normal", ONE), ("ann", "phys", "normal", TWO), ("bob", "phys", "normal", ONE)]
ROWS += [("cat", "chem", "normal", TWO), ("ann", "phys", "free", TWO)]


@pytest.mark.parametrize("backfill", ["easy", "conservative", "none"])
@pytest.mark.parametrize(
    ("limits", "starts"),
    [
        ({}, [0, 0, 0, 0, 0]),
        ({"max_jobs_per_user": 1}, [0, 100, 0, 0, 0]),
        ({"max_cpus_per_user": 2}, [0, 100, 0, 0, 0]),
        ({"max_jobs_per_account": 2}, [0, 0, 100, 0, 0]),
        ({"max_cpus_per_account": 3}, [0, 0, 100, 0, 0]),
        ({"max_jobs": 3}, [0, 0, 0, 100, 0]),
        ({"max_cpus": 3}, [0, 0, 100, 100, 0]),
        ({"max_submitted_per_user": 1}, [0, 0, 0, 0, 0]),
    ],
)
def test_each_limit_by_hand(limits: dict[str, int], starts: list[float], backfill: str) -> None:
    trace, place = jobs(*ROWS), site(**limits)
    result = replay(trace, place, backfill=backfill)
    check_replay(trace, place, result)
    assert result.start_s.tolist() == starts
    like_slurm = replay_like_slurm(trace, place)
    assert [start >= 100 for start in like_slurm.start_s] == [start >= 100 for start in starts]
    assert any("submitted" in note for note in result.notes) == ("max_submitted_per_user" in limits)


def test_gpus_count_by_user() -> None:
    trace = jobs(*[("ann", "phys", "normal", GPU)] * 3, ("bob", "phys", "normal", GPU))
    result = replay(trace, site(max_gpus_per_user=2))
    assert result.start_s.tolist() == [0, 0, 100, 0]


@pytest.mark.parametrize(
    ("limits", "reason", "left"),
    [
        ({"max_cpus_per_job": 1}, "more cpus than the 1 that QOS 'normal' allows", 2),
        ({"max_cpus": 1}, "more cpus than the 1 that QOS 'normal' allows", 2),
        ({"max_time_s": 50.0}, "time limit above the 50 s of QOS 'normal'", 4),
        ({"max_jobs_per_user": 0}, "QOS 'normal', which lets no job run", 4),
    ],
)
def test_jobs_that_can_never_run_are_left_out_with_the_reason(limits: dict[str, Any], reason: str, left: int) -> None:
    result = replay(jobs(*ROWS), site(**limits))
    assert result.num_dropped == left
    assert any(reason in note and note.startswith(f"{left} jobs left out") for note in result.notes)


def test_the_validator_sees_a_breach() -> None:
    trace, place = jobs(*ROWS), site(max_jobs_per_user=1)
    result = replay(trace, place)
    early = replace(result, start_s=np.zeros(5), end_s=np.full(5, 100.0))
    with pytest.raises(InvalidPlan, match="max_jobs_per_user of QOS 'normal' is 1; 2 at 0"):
        check_replay(trace, place, early)


def test_explain_names_the_limit() -> None:
    found = stretto.explain(jobs(*ROWS), site(max_jobs_per_user=1), job="row:1")
    assert "QOS 'normal' allows at most 1 jobs per user at once" in found.answer


def test_negative_limits_are_refused() -> None:
    with pytest.raises(InvalidInput, match="max_jobs -1 must not be negative"):
        Qos("normal", max_jobs=-1)
