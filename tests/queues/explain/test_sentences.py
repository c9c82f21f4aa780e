"""What people read of a wait."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import stretto
from stretto.core.trace import Trace
from stretto.errors import InvalidInput
from stretto.queues.explain.names import Clock, JobNames

#: As in the tests of alternatives, with ids, users and a calendar that begins on 2026-01-10 at 08:00 UTC.
TRACE = replace(
    Trace.of([0, 60, 120], [6000, 600, 1800], [10, 16, 4], [6000, 600, 120000], name="hades"),
    job_id=np.array([4650, 4700, 4711], np.int32),
    user=np.array([0, 1, 0], np.int32),
    origin_unix_s=1768032000.0,
    meta={"user_names": ["ada", "bo"]},
)


def test_one_sentence_answers() -> None:
    found = stretto.explain(TRACE, 16, job=4711)
    assert found.answer == (
        "Job 4711 waited 1.8 h for 4 processors: "
        "job 4700 had a reservation until 09:40, then too few processors were free."
    )
    details = [found.words.detail(one) for one in found.wait.stretches]
    assert details == [
        "job 4700 had a reservation (at first for 09:40); this job fitted, but would have delayed it",
        "0 processors free, 4 needed; job 4700 of user bo held them; it was first in the queue",
    ]
    assert found.words.head(found.wait) == "It was first in the queue since 09:40, for 10.0 min."


def test_a_job_that_did_not_wait() -> None:
    found = stretto.explain(TRACE, 16, job=4650)
    assert found.answer == "Job 4650 started at once: what it needs (10 processors) was free when it was submitted."


def test_json_has_what_the_text_has() -> None:
    found = stretto.explain(TRACE, 16, job=4711).to_json()
    wait = found["wait"]
    assert isinstance(wait, dict)
    assert (found["job"], found["row"], wait["zero_unix_s"]) == (4711, 2, 1768032000.0)
    assert [one["cause"] for one in wait["stretches"]] == ["reservation", "resource"]
    assert wait["holders"] == [{"job": 4700, "user": "bo", "share": 1.0, "how": "before"}]
    assert "followed" not in found


def test_jobs_are_found_by_names_of_arrays() -> None:
    named = replace(TRACE, meta={"job_names": ["4650", "4700_1", "4700_[2]"]})
    found = stretto.explain(named, 16, job="4700_1")
    assert (found.job, found.row) == ("4700_1", 1)
    assert stretto.explain(named, 16, job="4650").row == 0
    with pytest.raises(InvalidInput, match="has no job '4700_9'"):
        stretto.explain(named, 16, job="4700_9")
    by_number = replace(TRACE, meta={"job_names": {4711: "4700_2"}})
    assert JobNames(by_number).row("4700_2") == 2


def test_times_without_a_calendar_count_days() -> None:
    assert Clock(None).at(90000.0) == "day 2, 01:00"
    assert Clock(None).at(90000.0, beside_s=86400.0) == "01:00"
    assert Clock(0.0).at(90000.0) == "1970-01-02 01:00"


def test_mars_says_in_addition_what_it_followed() -> None:
    found = stretto.explain("trace:lublin?num_jobs=300&num_procs=64", job="row:150", strategy="mars")
    assert found.followed is not None
    assert {"followed", "measure", "choice", "wait"} <= found.to_json().keys()
