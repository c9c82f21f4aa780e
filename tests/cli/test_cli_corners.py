"""Corners of commands: quiet and JSON forms, long lists, and what is refused before any work."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from stretto.api.run import RunRequest, work_of
from stretto.cli import completion
from stretto.core.graph import Resources, TaskGraph
from stretto.core.workload import Workload
from stretto.errors import InvalidInput
from stretto.files.graphs.native import Native

from .conftest import CLUSTER, Run

SWF = "1 0 0 10 2 -1 -1 2 10 -1 1 1 1 1 1 1 -1 -1\n2 5 0 10 4 -1 -1 4 20 -1 1 2 1 1 1 1 -1 -1\n"


@pytest.fixture
def many(tmp_path: Path) -> Path:
    """A workload of 22 graphs of two tasks each."""
    graphs = [TaskGraph.from_edges([1.0, 2.0], [0], [1], name=f"g{i}") for i in range(22)]
    path = tmp_path / "many.json"
    path.write_bytes(Native().write(Workload.of(graphs, name="many")))
    return path


def native(tmp_path: Path, graph: TaskGraph | Workload) -> Path:
    path = tmp_path / "graph.json"
    path.write_bytes(Native().write(graph))
    return path


def test_show_in_its_quiet_forms(run: Run, diamond: Path, many: Path) -> None:
    assert run("show", diamond, "--output", "quiet").out == "4\n"
    assert run("show", many, "--output", "quiet").out == "44\n"
    assert run("show", CLUSTER, "--output", "quiet").out == "3\n"


def test_show_leaves_out_what_would_be_too_long(run: Run, many: Path) -> None:
    assert "and 2 more; name one with FILE#GRAPH" in run("show", many).out
    groups = ",".join(f"k{i}:1x{i + 1}" for i in range(23))
    assert "and 3 groups more" in run("show", groups).out


def test_show_tells_times_kinds_and_resources(run: Run, tmp_path: Path) -> None:
    shop = Resources(("saw",), np.array([1], np.int32), np.array([[1], [1]], np.int32))
    kinds = {"kinds": ("cpu", "gpu"), "kind_duration_s": np.ones((2, 2)), "transfer_unit": "seconds", "resources": shop}
    graph = TaskGraph.from_edges([1.0, 2.0], [0], [1], 3.0, **kinds)
    shown = run("show", native(tmp_path, graph)).out
    assert "3 s of transfers (the source gives times)" in shown
    assert "cpu, gpu" in shown
    assert "saw" in shown


def test_convert_tells_what_a_format_cannot_hold(run: Run, tmp_path: Path) -> None:
    graph = TaskGraph.from_edges([1.0, 2.0], [0], [1], 3.0, memory_bytes=np.array([1.0, 2.0]))
    source, target = native(tmp_path, Workload.of([graph])), tmp_path / "out.stg"
    ran = run("convert", source, target)
    assert ran.code == 0
    assert "this format cannot hold" in ran.err
    found = run("convert", source, tmp_path / "again.stg", "--output", "json").json
    assert found["num_tasks"] >= 2
    assert found["lost"]
    assert run("convert", source, tmp_path / "third.stg", "--output", "quiet").out.strip().endswith("third.stg")


def test_targets_that_cannot_be_written_are_refused_at_once(run: Run, diamond: Path, tmp_path: Path) -> None:
    ran = run("convert", diamond, tmp_path)
    assert ran.code == 2
    assert "cannot write: this is a directory" in ran.err
    assert "there is no directory" in run("convert", diamond, tmp_path / "no" / "x.dot").err


def test_a_bound_needs_time(run: Run, diamond: Path) -> None:
    ran = run("bound", diamond, "-c", CLUSTER, "--time-limit", "0")
    assert (ran.code, "must be above 0" in ran.err) == (2, True)


def test_explain_in_its_forms(run: Run, tmp_path: Path) -> None:
    trace = tmp_path / "jobs.swf"
    trace.write_text(SWF)
    words = ("explain", trace, "--procs", "4", "--strategy", "mars")
    quiet = run(*words, "--output", "quiet")
    assert quiet.code == 0
    found = run(*words, "--output", "json").json
    assert (found["row"], found["followed"], found["choice"]) == (1, quiet.out.strip(), None)
    assert "nothing had been compared yet" in run(*words, "--job", "row:0").out
    ran = run(*words, "--job", "row:2")
    assert (ran.code, "there is no row 2: the rows are 0..1" in ran.err) == (2, True)


def test_a_trace_that_does_not_say_its_machine_asks_for_it(run: Run, diamond: Path) -> None:
    ran = run("replay", diamond)
    assert (ran.code, "does not say on how many processors it ran" in ran.err) == (2, True)
    assert "at least one" in run("replay", diamond, "--procs", "0").err


def test_several_graphs_are_no_trace(run: Run, many: Path) -> None:
    ran = run("replay", many, "--procs", "4")
    assert ran.code == 2
    assert "a workload of several graphs is not a trace" in ran.err


def test_a_replay_tells_who_was_killed(run: Run, tmp_path: Path) -> None:
    trace = tmp_path / "jobs.swf"
    trace.write_text("; MaxProcs: 4\n" + SWF.replace("2 5 0 10 4 -1 -1 4 20", "2 5 0 40 4 -1 -1 4 20"))
    ran = run("replay", trace, "--kill")
    assert ran.code == 0
    assert any(line.split() == ["killed", "1"] for line in ran.out.splitlines())


def test_a_run_that_is_to_be_kept_is_not_begun_without_its_log(
    run: Run, diamond: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("STRETTO_HOME", str(tmp_path / "file"))
    ran = run("plan", diamond, "-c", CLUSTER, "--log")
    assert (ran.code, ran.out) == (2, "")
    assert str(tmp_path / "file") in ran.err


def test_requests_of_runs_are_checked(many: Path) -> None:
    with pytest.raises(InvalidInput, match="cannot be resumed"):
        RunRequest.from_settings({}, "r1")
    with pytest.raises(InvalidInput, match="holds several graphs"):
        work_of(str(many))
    work = work_of("kernels:tiled-matmul")
    assert work.graph.num_tasks > 0
    with pytest.raises(InvalidInput, match="colour"):
        work_of("kernels:tiled-matmul?colour=8")


@pytest.mark.parametrize(
    ("offer", "start", "expected"),
    [
        (completion.backfill_names, "ea", "easy"),
        (completion.estimate_names, "us", "user"),
        (completion.pool_rule_names, "ch", "cheapest"),
        (completion.rack_cases, "sm", "small-rack"),
        (completion.rack_dispatchers, "srpt-t", "srpt-true"),
        (completion.trainer_names, "mar", "mars"),
    ],
)
def test_tab_offers_names_that_begin_so(offer: Callable[[str], list[str]], start: str, expected: str) -> None:
    assert expected in offer(start)
    assert all(name.startswith(start) for name in offer(start))
    assert offer("no such") == []


def test_json_stays_json(run: Run, diamond: Path) -> None:
    assert json.loads(run("show", diamond, "--output", "json").out)["what"] == "graph"
