"""The desk where a worker does its work, without the server around it; and the inputs and commands it goes by."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from stretto.core.graph import Resources, TaskGraph
from stretto.errors import InvalidInput, UnknownName
from stretto.files.graphs.native import Native

pytest.importorskip("starlette")
from stretto.web.commands import rack_command
from stretto.web.models import PlanRequest, ReplayRequest, WhatIfRequest
from stretto.web.work import Desk

DOT = "digraph g { a -> b; a -> c; }"
SWF = "; MaxProcs: 4\n1 0 0 10 2 -1 -1 2 10 -1 1 1 1 1 1 1 -1 -1\n2 5 0 10 4 -1 -1 4 20 -1 1 2 1 1 1 1 -1 -1\n"


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(str(tmp_path / "runs.db"))


def ask(desk: Desk, kind: str, model: type, **fields: Any) -> dict[str, Any]:
    """Do a request as the server would send it; the id of the run is told before the answer."""
    more = {"run": fields.pop("run")} if "run" in fields else {}
    told: list[dict[str, Any]] = []
    found = desk.do({"kind": kind, "body": model(**fields).model_dump() | more}, told.append)
    assert told == [{"run_id": found["run_id"]}]
    return dict(found)


def plan(desk: Desk, **fields: Any) -> dict[str, Any]:
    return ask(desk, "plan", PlanRequest, **fields)


def replay(desk: Desk, **fields: Any) -> dict[str, Any]:
    return ask(desk, "replay", ReplayRequest, **fields)


def what_if(desk: Desk, run: str, **fields: Any) -> dict[str, Any]:
    return ask(desk, "what-if", WhatIfRequest, run=run, **fields)


def test_a_plan_is_kept_as_a_run_with_its_command(desk: Desk) -> None:
    found = plan(desk, workload="random-dag", workload_params={"num_tasks": 9, "seed": 2}, cluster="cpu:2", name="mine")
    info = desk.log.run(found["run_id"])
    assert (info.kind, info.name, info.status) == ("plan", "mine", "done")
    assert found["num_tasks"] == 9
    assert info.settings["command"] == shlex.join(
        [
            "stretto",
            "plan",
            "workload:random-dag?num_tasks=9&seed=2",
            "--policy",
            "heft",
            "--seed",
            "0",
            "--cluster",
            "cpu:2",
        ]
    )
    brought = plan(desk, graph=DOT, cluster="cpu:2")
    assert brought["num_tasks"] == 3
    assert desk.log.run(brought["run_id"]).settings["command"] is None


def test_machines_must_be_named_unless_a_project_brings_them(desk: Desk) -> None:
    with pytest.raises(InvalidInput, match="name the machines"):
        plan(desk, graph=DOT)
    shop = Resources(("saw",), np.array([1], np.int32), np.array([[1], [1]], np.int32))
    project = TaskGraph.from_edges([2.0, 3.0], [], [], resources=shop)
    found = plan(
        desk, graph=Native().write(project).decode(), policy="annealing", policy_params={"max_evaluations": 50}
    )
    assert found["makespan_s"] == 5.0
    assert desk.log.run(found["run_id"]).settings["cluster"] == "shop:1"


def test_a_plan_decided_otherwise_stands_beside_the_first(desk: Desk) -> None:
    first = plan(desk, workload="random-dag", workload_params={"num_tasks": 9}, cluster="cpu:2")
    found = what_if(desk, first["run_id"], policy="round-robin", cluster="cpu:3")
    assert found["before"]["run_id"] == first["run_id"]
    assert found["after"]["run_id"] == found["run_id"]
    after = found["after"]["settings"]
    assert (after["policy"], after["cluster"], after["parent"]) == ("round-robin", "cpu:3", first["run_id"])
    assert found["before"]["settings"]["policy"] == "heft"
    same = what_if(desk, first["run_id"])
    assert same["after"]["summary"]["makespan_s"] == found["before"]["summary"]["makespan_s"]
    named = desk.log.run(same["run_id"]).settings["command"]
    assert "workload:random-dag?num_tasks=9" in str(named)


def test_a_replay_and_the_same_jobs_by_another_rule(desk: Desk) -> None:
    first = replay(desk, trace=SWF, strategy="sjf")
    assert (first["num_jobs"], first["num_procs"], first["num_dropped"]) == (2, 4, 0)
    assert desk.log.run(first["run_id"]).settings["command"] is None
    found = what_if(desk, first["run_id"], strategy="fcfs", backfill="none")
    after = found["after"]["settings"]
    assert (after["strategy"], after["backfill"], after["procs"]) == ("fcfs", "none", 4)
    moved = what_if(desk, first["run_id"], pools="cloud:0-4*2@1.5")
    assert moved["after"]["settings"]["pools"] == "cloud:0-4*2@1.5"
    again = what_if(desk, moved["run_id"], pool_rule="fastest")
    assert again["after"]["settings"]["pools"] == "cloud:0-4*2@1.5"
    assert again["after"]["settings"]["pool_rule"] == "fastest"


def test_a_run_that_keeps_nothing_cannot_be_asked_again(desk: Desk) -> None:
    run = desk.log.start("train", "nothing", {})
    run.finish("done", {})
    with pytest.raises(InvalidInput, match="has neither a plan nor a replay"):
        what_if(desk, run.id)
    with pytest.raises(InvalidInput, match="has neither a plan nor choices of a strategy to explain"):
        explain(desk, run.id, "0")
    with pytest.raises(UnknownName, match="unknown run"):
        what_if(desk, "nobody")


def test_a_view_and_an_explanation_are_answers_too(desk: Desk) -> None:
    first = plan(desk, graph=DOT, cluster="cpu:2")
    view = desk.do({"kind": "view", "body": {"run": first["run_id"]}}, lambda news: None)
    assert isinstance(view, bytes)
    assert first["run_id"].encode() in view
    why = desk.do({"kind": "explain", "body": {"run": first["run_id"], "what": "a"}}, lambda news: None)
    assert "a" in str(why)


def view(desk: Desk, run: str) -> dict[str, Any]:
    found = json.loads(desk.do({"kind": "view", "body": {"run": run}}, lambda news: None))
    assert isinstance(found, dict)
    return found


def explain(desk: Desk, run: str, what: str) -> Any:
    return desk.do({"kind": "explain", "body": {"run": run, "what": what}}, lambda news: None)


def test_the_view_of_a_replay_has_a_map_of_its_pools(desk: Desk) -> None:
    alone = replay(desk, trace=SWF)
    pools = replay(desk, trace=SWF, pools="own:2*1,cloud:0-4*2@1.5")
    assert view(desk, pools["run_id"])["map"]["names"] == ["own", "cloud"]
    assert view(desk, alone["run_id"])["id"] == alone["run_id"]


def test_choices_of_a_portfolio_are_explained_by_number(desk: Desk) -> None:
    jobs = {"generator": "lublin", "generator_params": {"num_jobs": 60, "num_procs": 16, "seed": 1}, "procs": 16}
    run = replay(desk, strategy="portfolio", **jobs)["run_id"]
    first = explain(desk, run, "0")
    assert (first["run"], first["epoch"]) == (run, 0)
    for wrong in (str(first["num_epochs"]), "soon", "9" * 12):
        with pytest.raises(UnknownName, match="unknown epoch"):
            explain(desk, run, wrong)


def test_tasks_are_explained_by_name_or_number(desk: Desk) -> None:
    run = plan(desk, graph=DOT, cluster="cpu:2")["run_id"]
    assert explain(desk, run, "0") == explain(desk, run, "a")
    for wrong in ("3", "nobody", "9" * 12):
        with pytest.raises(UnknownName, match="unknown task"):
            explain(desk, run, wrong)


def test_a_project_has_a_view_and_no_devices_to_choose_from(desk: Desk) -> None:
    shop = Resources(("saw",), np.array([1], np.int32), np.array([[1], [1]], np.int32))
    project = TaskGraph.from_edges([2.0, 3.0], [], [], resources=shop)
    settings = {"policy": "annealing", "policy_params": {"max_evaluations": 50}}
    run = plan(desk, graph=Native().write(project).decode(), **settings)["run_id"]
    assert view(desk, run)["id"] == run
    with pytest.raises(InvalidInput, match="a project has no devices to choose from"):
        explain(desk, run, "0")


def test_a_rack_is_played_by_another_rule(desk: Desk) -> None:
    settings = {"policy": "srpt-belief", "cluster": "small-rack", "stream": 1, "seed": 0}
    run = desk.log.start("rack", "small-rack", settings)
    run.finish("done", {})
    found = what_if(desk, run.id, policy="srpt-true")
    after = found["after"]["settings"]
    assert after["parent"] == run.id
    assert after["command"] == rack_command({**settings, "policy": "srpt-true"})
    assert desk.log.run(found["run_id"]).status == "done"
