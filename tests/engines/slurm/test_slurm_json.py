"""Jobs and nodes in the shapes of three releases of Slurm."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest

from stretto.engines.slurm.client.errors import SlurmUnreachable
from stretto.engines.slurm.client.jobs import parse_jobs, parse_nodes
from stretto.errors import InvalidInput


def number(value: float | None, *, infinite: bool = False) -> dict[str, Any]:
    return {"set": value is not None, "infinite": infinite, "number": value or 0}


#: Plain numbers, states as text, no nice.
OLD: dict[str, Any] = {
    "job_id": 7,
    "name": "wave",
    "user_name": "ada",
    "user_id": 1001,
    "job_state": "RUNNING",
    "state_reason": "None",
    "partition": "all",
    "comment": "note",
    "submit_time": 1000,
    "eligible_time": 1001,
    "start_time": 1005,
    "end_time": 4605,
    "time_limit": 60,
    "cpus": 8,
    "node_count": 2,
    "shared": None,
    "nodes": "n[1-2]",
    "required_nodes": "",
    "priority": 4321,
    "nice": None,
    "exit_code": 0,
    "array_task_string": "",
}
#: Numbers that say whether they are set, states as lists.
NEW: dict[str, Any] = OLD | {
    "job_state": ["RUNNING"],
    "submit_time": number(1000),
    "eligible_time": number(1001),
    "start_time": number(1005),
    "end_time": number(4605),
    "time_limit": number(60),
    "cpus": number(8),
    "node_count": number(2),
    "priority": number(4321),
    "shared": [],
    "nice": 0,
    "exit_code": {"status": ["SUCCESS"], "return_code": number(0), "signal": {"id": number(None), "name": ""}},
}
#: The newest adds flags to states and fields that nobody here reads.
NEWEST: dict[str, Any] = NEW | {"job_state": ["RUNNING", "POWER_UP_NODE"], "licenses_allocated": "", "segment_size": 4}


def read(entry: dict[str, Any], **changes: Any) -> Any:
    return parse_jobs(json.dumps({"meta": {}, "errors": [], "jobs": [entry | changes]}))[0]


@pytest.mark.parametrize("entry", [OLD, NEW, NEWEST], ids=["22.05", "24.11", "newer"])
class TestShapes:
    def test_says_the_same(self, entry: dict[str, Any]) -> None:
        job = read(entry)
        assert (job.job_id, job.name, job.user, job.state, job.comment) == (7, "wave", "ada", "RUNNING", "note")
        assert (job.submit_s, job.start_s, job.end_s, job.time_limit_s) == (1000.0, 1005.0, 4605.0, 3600.0)
        assert (job.num_cpus, job.num_nodes, job.priority, job.exit_code) == (8, 2, 4321.0, 0)
        assert job.is_running
        assert not job.is_exclusive


def test_an_exit_code_is_unpacked_in_both_shapes() -> None:
    assert (read(OLD, exit_code=98 << 8).exit_code, read(OLD, exit_code=9).signal) == (98, 9)
    code = {"status": ["ERROR"], "return_code": number(98), "signal": {"id": number(15), "name": "TERM"}}
    assert (read(NEW, exit_code=code).exit_code, read(NEW, exit_code=code).signal) == (98, 15)


@pytest.mark.parametrize("limit", [None, 0, 4294967295, number(None, infinite=True), number(None)])
def test_no_time_limit_is_none(limit: Any) -> None:
    assert math.isnan(read(OLD, time_limit=limit).time_limit_s)


def test_times_that_have_not_come_are_nan() -> None:
    assert math.isnan(read(OLD, start_time=0).start_s)
    assert math.isnan(read(NEW, start_time=number(0)).start_s)


@pytest.mark.parametrize("shared", ["none", ["none"]])
def test_a_job_that_wants_its_nodes_alone_is_noticed(shared: Any) -> None:
    assert read(OLD, shared=shared).is_exclusive


@pytest.mark.parametrize(
    ("state", "reason", "is_ready"),
    [
        ("PENDING", "Priority", True),
        ("PENDING", "Resources", True),
        ("PENDING", "ReqNodeNotAvail, UnavailableNodes:n1", True),
        ("PENDING", "Dependency", False),
        ("PENDING", "JobHeldUser", False),
        ("RUNNING", "None", False),
    ],
)
def test_only_jobs_that_wait_for_their_turn_are_ready(state: str, reason: str, is_ready: bool) -> None:
    assert read(OLD, job_state=state, state_reason=reason).is_ready is is_ready


def test_a_job_that_is_completing_still_holds_its_nodes() -> None:
    job = read(NEW, job_state=["COMPLETED", "COMPLETING"])
    assert job.is_running
    assert not job.is_ended


NODE = {"name": "n1", "cpus": 8, "gres": "gpu:a100:2(S:0-1),gpu:t4:1", "real_memory": 100, "partitions": ["all"]}


@pytest.mark.parametrize(
    ("state", "is_usable"),
    [("idle", True), (["IDLE"], True), ("mixed", True), (["IDLE", "DRAIN"], False), ("down", False)],
)
def test_nodes(state: Any, is_usable: bool) -> None:
    for features in ("fast,gpu", ["fast", "gpu"]):
        entry = NODE | {"state": state, "features": features}
        (node,) = parse_nodes(json.dumps({"nodes": [entry]}))
        assert (node.num_cpus, node.num_gpus, node.memory_bytes) == (8, 3, 100 * 2**20)
        assert (node.features, node.is_usable) == (("fast", "gpu"), is_usable)


@pytest.mark.parametrize("text", ["", '{"jobs": [{"job_id"', "{" * 5000])
def test_an_answer_that_is_cut_off_counts_as_none(text: str) -> None:
    """The steering layer and its guard ask again; an answer that is complete and wrong ends them."""
    with pytest.raises(SlurmUnreachable, match="answer about its jobs is not JSON"):
        parse_jobs(text)


@pytest.mark.parametrize("text", ["[]", "{}", '{"jobs": 3}', '{"jobs": [3]}', '{"jobs": [{"job_id": 3}]}'])
def test_what_is_no_answer_is_refused(text: str) -> None:
    with pytest.raises(InvalidInput):
        parse_jobs(text)


def test_a_number_that_is_none_is_refused() -> None:
    with pytest.raises(InvalidInput, match="cpus"):
        read(OLD, cpus="many")
