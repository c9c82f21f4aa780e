"""What a worker takes from requests, how it names it on the command line, and what it answers when it fails."""

from __future__ import annotations

import base64
import gzip
from typing import Any

import pytest

from stretto.core.cluster import Cluster
from stretto.core.graph import TaskGraph
from stretto.core.trace import Trace
from stretto.errors import InvalidInput, StrettoError, UnknownName

pytest.importorskip("starlette")
from stretto.web import inputs
from stretto.web.commands import plan_command, replay_command
from stretto.web.failures import failure_of
from stretto.web.models import PlanRequest, ReplayRequest

DOT = "digraph g { a -> b; a -> c; }"
SWF = "; MaxProcs: 4\n1 0 0 10 2 -1 -1 2 10 -1 1 1 1 1 1 1 -1 -1\n2 5 0 10 4 -1 -1 4 20 -1 1 2 1 1 1 1 -1 -1\n"


def graph_of(**fields: Any) -> Any:
    return inputs.graph_of(PlanRequest(**fields).model_dump())


def trace_of(**fields: Any) -> Trace:
    return inputs.trace_of(ReplayRequest(**fields).model_dump())


def test_a_graph_comes_as_text_as_an_object_and_packed() -> None:
    packed = base64.b64encode(gzip.compress(DOT.encode())).decode()
    for given in ({"graph": DOT}, {"graph": packed, "encoding": "base64"}):
        found = graph_of(**given)
        assert isinstance(found, TaskGraph)
        assert found.num_tasks == 3
    assert isinstance(graph_of(workload="random-dag"), TaskGraph)


@pytest.mark.parametrize(
    ("fields", "field", "words"),
    [
        ({}, "graph", "either a graph or the name of a workload"),
        ({"graph": DOT, "workload": "random-dag"}, "graph", "either a graph or the name of a workload"),
        ({"graph": "no!", "encoding": "base64"}, "graph", "is not base64"),
        ({"workload": "random-dag", "workload_params": {"path": "/etc/x"}}, "workload_params.path", "not a number or"),
        (
            {"workload": "random-dag", "workload_params": {"num_tasks": 10**7}},
            "workload_params.num_tasks",
            "is more than",
        ),
    ],
)
def test_wrong_graphs_are_refused_with_their_place(fields: dict[str, Any], field: str, words: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        graph_of(**fields)
    assert words in str(caught.value)
    assert caught.value.field == field


def test_text_that_is_no_graph_is_told_as_the_graph() -> None:
    with pytest.raises(InvalidInput) as caught:
        graph_of(graph="digraph g { a -> ")
    assert caught.value.source == "graph"


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({}, "either a trace or the name of a generator"),
        ({"trace": SWF, "generator": "lublin"}, "either a trace or the name of a generator"),
        ({"generator": "lublin", "generator_params": {"color": 1}}, "color"),
        ({"trace": "1 2 3"}, "trace"),
    ],
)
def test_wrong_traces_are_refused(fields: dict[str, Any], words: str) -> None:
    with pytest.raises(StrettoError, match=words):
        trace_of(**fields)


def test_machines_are_those_that_are_named_or_recorded() -> None:
    trace = trace_of(trace=SWF)
    assert inputs.machine_of(trace, None, None) == 4
    assert inputs.machine_of(trace, 9, None) == 9
    shorthand = inputs.machine_of(trace, None, "a:2*3")
    toml = inputs.machine_of(trace, None, '[[pool]]\nname = "a"\nnum_nodes = 2\nprocs_per_node = 3\n')
    assert isinstance(shorthand, tuple)
    assert isinstance(toml, tuple)
    assert [(pool.name, pool.num_procs) for pool in shorthand] == [(pool.name, pool.num_procs) for pool in toml]
    with pytest.raises(InvalidInput, match="say either procs or pools"):
        inputs.machine_of(trace, 3, "a:2")
    with pytest.raises(InvalidInput, match="does not say on how many processors"):
        inputs.machine_of(Trace.of([0], [1], [1]), None, None)


def test_sources_are_named_as_on_the_command_line() -> None:
    named = ReplayRequest(generator="lublin", generator_params={"num_jobs": 5, "seed": 1}).model_dump()
    assert inputs.trace_source(named) == "trace:lublin?num_jobs=5&seed=1"
    assert inputs.trace_source(ReplayRequest(trace=SWF).model_dump()) is None
    assert inputs.graph_source(PlanRequest(workload="random-dag").model_dump()) == "workload:random-dag"
    assert inputs.checked({"num-tasks": 5, "kind": "a,b"}, "x") == {"num_tasks": 5, "kind": "a,b"}
    assert isinstance(inputs.cluster_in("cpu:2"), Cluster)
    assert inputs.cluster_in('[[device]]\nkind = "cpu"\ncount = 3\n').num_devices == 3


# Commands and failures ----------------------------------------------------------------------------


def test_commands_say_what_was_asked() -> None:
    request = {"policy": "heft", "seed": 3, "time_limit_s": 1.5}
    assert plan_command(request, {"graph_source": "w:a b", "cluster_source": None}) == (
        "stretto plan 'w:a b' --policy heft --seed 3 --time-limit 1.5"
    )
    settings = {"procs": 4, "pools": None, "strategy": "sjf", "backfill": "easy", "pool_rule": "first"}
    assert replay_command(settings, {"procs": 4}, "trace:x") == (
        "stretto replay trace:x --strategy sjf --backfill easy --procs 4"
    )
    assert replay_command(settings, {}, "trace:x") == "stretto replay trace:x --strategy sjf --backfill easy"
    on_pools = settings | {"procs": None, "pools": "a:2"}
    assert replay_command(on_pools, {}, "trace:x") == (
        "stretto replay trace:x --strategy sjf --backfill easy --pools a:2 --pool-rule first"
    )
    assert replay_command(on_pools | {"pools": "[[pool]]"}, {}, "trace:x") is None
    assert replay_command(settings, {}, None) is None


@pytest.mark.parametrize(
    ("error", "status", "words"),
    [
        (UnknownName("run", "r1", []), 404, "unknown run"),
        (UnknownName("policy", "hetf", ["heft"]), 422, "heft"),
        (InvalidInput("is wrong", field="x"), 422, "is wrong"),
        (MemoryError(), 413, "more memory than a job may use"),
        (ZeroDivisionError("by zero"), 500, "log has the reason"),
        (OSError(28, "No space left on device", "/inner/path"), 507, "disk of the server is full"),
        (OSError(13, "Permission denied", "/inner/path"), 500, "log has the reason"),
        (InvalidInput("is wrong", source="/inner/path/runs.db"), 422, "runs.db: is wrong"),
    ],
)
def test_failures_are_answers(error: BaseException, status: int, words: str) -> None:
    found = failure_of(error)
    assert found["status"] == status
    assert words in found["body"]["error"]
    assert "inner" not in str(found)
