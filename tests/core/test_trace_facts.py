"""What a trace is said to be, of a small one by hand, and what it is said to lack."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import stretto
from stretto.core.request import ResourceRequest
from stretto.core.results.trace_facts import _COUNTED, PartitionFacts, SkippedFacts, trace_facts
from stretto.core.trace import Trace

PACKAGE = Path(stretto.__file__).parent

TRACE = replace(
    Trace.of([100, 100, 1900, 3700], [3600, 7200, 0, 1800], [1, 2, 4, 10], [4000, np.nan, 1, 1], max_procs=20),
    name="log",
    origin_unix_s=1000.0,
    user=np.array([0, 5, 5, -1], np.int32),
    account=np.array([0, 0, 0, 0], np.int32),
    partition=np.array([0, 1, 2, -1], np.int32),
    wait_s=np.array([10.0, np.nan, 20.0, 60.0]),
    held_s=np.array([0.0, 5.0, 1.0, 0.0]),
    meta={"format": "swf", "partition_names": ("small", "big")},
)


def test_figures_by_hand() -> None:
    found = trace_facts(TRACE)
    assert (found.name, found.format, found.num_jobs, found.num_without_run_time) == ("log", "swf", 4, 1)
    assert (found.first_unix_s, found.span_s, found.max_procs) == (1100.0, 3600.0, 20)
    assert found.proc_hours == 1 + 4 + 0 + 5
    assert found.load == pytest.approx(10 / 20)
    assert found.widths == pytest.approx((3.0, 9.1, 10.0))
    assert (found.num_users, found.num_accounts) == (2, 1)
    assert found.partitions == (
        PartitionFacts("big", 1, 4.0),
        PartitionFacts("small", 1, 1.0),
        PartitionFacts("2", 1, 0.0),
    )
    assert (found.num_gpu_jobs, found.gpus) == (0, {})
    assert (found.mean_run_s, found.mean_wait_s, found.num_held) == (3150.0, 30.0, 2)
    assert (found.num_requests, found.num_dependencies, found.num_limited, found.num_skipped) == (0, 0, 0, 0)
    assert (found.skipped, found.notes) == ((), ())
    assert found.answer == "log has 4 jobs over 1.0 h, whose work is 50.0 % of what 20 processors can do in that time."
    told = found.to_json()
    assert told["answer"] == found.answer
    assert told["partitions"][0] == {"name": "big", "num_jobs": 1, "proc_hours": 4.0}  # type: ignore[index]


def test_an_empty_trace_and_one_of_a_moment_have_no_load() -> None:
    empty = trace_facts(TRACE.take(slice(0, 0)))
    assert (empty.num_jobs, empty.span_s, empty.load, empty.widths) == (0, 0.0, None, (0.0, 0.0, 0.0))
    assert (empty.first_unix_s, empty.mean_run_s, empty.mean_wait_s) == (None, 0.0, None)
    moment = trace_facts(TRACE.take(slice(0, 2)))
    assert (moment.span_s, moment.load) == (0.0, None)
    assert moment.answer == "log has 2 jobs over 0 s with 5 processor-hours of work."
    assert trace_facts(replace(TRACE, max_procs=None)).load is None
    assert trace_facts(replace(TRACE, origin_unix_s=None)).first_unix_s is None


def test_what_a_trace_does_not_say_is_listed() -> None:
    assert trace_facts(TRACE).missing == (
        "time limits of 1 of 4 jobs",
        "recorded waits of 1 of 4 jobs",
        "memory",
        "nodes, tasks and GPUs per job: a job is a number of processors",
    )
    bare = trace_facts(Trace.of([0, 1], [1, 1], [1, 1], [np.nan, np.nan]))
    assert bare.missing == (
        "the size of the machine: replays need it (--procs, --site)",
        "time limits of all jobs",
        "recorded waits of all jobs",
        "users",
        "partitions",
        "memory",
        "nodes, tasks and GPUs per job: a job is a number of processors",
    )
    unknown = np.full(4, -1, np.int32)
    told = replace(TRACE, user=unknown, partition=unknown, memory_bytes=np.array([0, 0, 0, 1.0]))
    assert trace_facts(told).missing[2:4] == ("users", "partitions")
    assert "memory" in trace_facts(replace(told, memory_bytes=np.zeros(4))).missing
    full = replace(
        TRACE,
        estimate_s=np.ones(4),
        wait_s=np.zeros(4),
        memory_bytes=np.ones(4),
        request=np.zeros(4, np.int32),
        requests=(ResourceRequest(),),
    )
    assert trace_facts(full).missing == ()


def test_gpus_count_by_type_where_requests_name_them() -> None:
    gpus = np.array([0, 2, 1, 0], np.int32)
    plain = trace_facts(replace(TRACE, num_gpus=gpus))
    assert (plain.num_gpu_jobs, plain.gpus) == (2, {"gpu": 3})
    each = ResourceRequest(num_tasks=3, gpus_per_task={"a100": 2})
    node = ResourceRequest(num_tasks=5, min_nodes=2, gpus_per_node={"t4": 4, "a100": 1})
    asked = replace(
        TRACE, num_gpus=gpus, request=np.array([0, 0, 1, 2], np.int32), requests=(each, (each, node), ResourceRequest())
    )
    found = trace_facts(asked)
    assert found.gpus == {"a100": 2 * 6 + 6 + 2, "t4": 8}
    assert found.num_requests == 3
    assert trace_facts(replace(asked, num_gpus=np.zeros(4, np.int32))).gpus == {}


def test_faults_of_one_kind_are_one_the_most_frequent_first() -> None:
    rows = [(9, "start 5 is late"), (3, "user 'a' is odd"), (7, "user 'bc' is odd"), (2, "no end")]
    found = trace_facts(replace(TRACE, meta={"skipped": rows, "num_skipped": 4}))
    assert found.skipped == (
        SkippedFacts(2, 3, "user 'a' is odd"),
        SkippedFacts(1, 2, "no end"),
        SkippedFacts(1, 9, "start 5 is late"),
    )
    assert found.num_skipped == 4
    assert found.answer.endswith("; 4 rows of the file left out.")
    assert found.to_json()["skipped"][1] == {"num_rows": 1, "line": 2, "reason": "no end"}  # type: ignore[index]


def test_limits_dependencies_and_notes_are_counted() -> None:
    told = replace(
        TRACE,
        limit_group=np.array([-1, 0, 0, 1], np.int32),
        group_limits=(1, 1),
        parent=np.array([0, 0], np.int32),
        child=np.array([1, 2], np.int32),
        meta={"num_steps": 1234, "num_pending": 0, "processors_are": "cores", "lost": {"colors": 1500}},
    )
    found = trace_facts(told)
    assert (found.num_limited, found.num_dependencies) == (3, 2)
    assert found.notes == (
        "1,234 rows of steps, which are part of their jobs",
        "processors are cores",
        "not kept, of 1,500 jobs: colors",
    )


def test_what_readers_count_is_told_in_plain_words() -> None:
    """Each key is one that a reader writes, and each note begins with its number and goes on in lower case."""
    readers = "\n".join(path.read_text() for path in (PACKAGE / "files" / "traces").glob("*.py"))
    assert all(f'"{key}"' in readers or f"{key}=" in readers for key in _COUNTED)
    assert len(_COUNTED) == 11
    notes = trace_facts(replace(TRACE, meta=dict.fromkeys(_COUNTED, 1000))).notes
    assert len(set(notes)) == len(_COUNTED)
    assert all(re.fullmatch(r"1,000 [a-z][a-z, ]*[a-z]", note) for note in notes)


def test_types_of_gpus_that_no_job_asks_for_any_more_count_none() -> None:
    each, other = ResourceRequest(gpus_per_task={"a100": 1}), ResourceRequest(gpus_per_task={"t4": 1})
    whole = replace(
        TRACE,
        num_gpus=np.array([1, 1, 0, 1], np.int32),
        request=np.array([0, 0, 2, 1], np.int32),
        requests=(each, other, ResourceRequest()),
    )
    assert trace_facts(whole).gpus == {"a100": 2, "t4": 1}
    assert trace_facts(whole.take([0, 1])).gpus == {"a100": 2, "t4": 0}


def test_the_first_submission_and_run_time_are_those_of_the_first_job() -> None:
    assert trace_facts(TRACE.take([2, 3])).first_unix_s == 2900.0
    held = trace_facts(replace(TRACE, held_s=None, account=None, user=None))
    assert (held.num_held, held.num_accounts, held.num_users) == (0, 0, 0)
    none = trace_facts(replace(TRACE, partition=None))
    assert none.partitions == ()
    few = trace_facts(replace(TRACE, meta={}))
    assert [part.name for part in few.partitions] == ["1", "0", "2"]
    assert (few.format, few.num_skipped) == ("", 0)
