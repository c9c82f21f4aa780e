"""Commands that look, convert and draw: list, show, convert, gantt, version."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from stretto import __version__, catalog

from .conftest import CLUSTER, DIAMOND, Run


@pytest.mark.parametrize(
    ("what", "table"),
    [("policies", catalog.PLANNERS), ("formats", catalog.FORMATS), ("workloads", catalog.WORKLOADS)],
)
def test_list_holds_all_of_the_catalog(run: Run, what: str, table: dict[str, str]) -> None:
    assert run("list", what, "--output", "quiet").out.split() == list(table)
    entries = run("list", what, "--output", "json").json
    assert [entry["name"] for entry in entries] == list(table)
    assert all(entry["summary"] for entry in entries)
    shown = run("list", what).out
    assert all(name in shown for name in table)


def test_show_measures_a_graph(run: Run, diamond: Path) -> None:
    found = run("show", diamond, "--output", "json").json
    assert (found["num_tasks"], found["num_edges"], found["depth"], found["width"]) == (4, 4, 3, 2)
    assert found["work_s"] == 7.0
    assert found["critical_path_s"] == 5.0
    assert found["data"] == 4e8
    assert found["ccr"] == pytest.approx(0.1 / 1.75)  # 1e8 bytes at 1 GB/s, over 7/4 s
    table = run("show", diamond).out
    assert "CCR" in table
    assert "400 MB" in table


def test_show_finds_the_ccr_that_a_generator_was_asked_for(run: Run) -> None:
    found = run("show", "workload:random-dag?num_tasks=80&ccr=3", "--output", "json").json
    assert found["ccr"] == pytest.approx(3.0)


def test_show_measures_a_workload_of_several(run: Run, tmp_path: Path) -> None:
    graph = {key: value for key, value in DIAMOND.items() if key not in ("format", "version")}
    jobs = [{"arrival_s": float(arrival), "graph": graph | {"name": f"d{arrival}"}} for arrival in (0, 5)]
    path = tmp_path / "two.json"
    path.write_text(json.dumps({"format": "stretto-workload", "version": 1, "name": "two", "jobs": jobs}))
    found = run("show", path, "--output", "json").json
    assert [job["arrival_s"] for job in found["jobs"]] == [0.0, 5.0]
    assert found["num_tasks"] == 8
    assert "2 graphs, 8 tasks" in run("show", path).out
    assert run("show", f"{path}#d5", "--output", "json").json["name"] == "d5"


@pytest.mark.parametrize("source", ["cpu:4,gpu:2x5.0@16GB/s", "cpu:1"])
def test_show_describes_a_cluster(run: Run, source: str) -> None:
    found = run("show", source, "--output", "json").json
    assert found["what"] == "cluster"
    assert found["num_devices"] == len(found["devices"])
    shown = run("show", source)
    assert shown.code == 0
    assert "cpu" in shown.out


def test_show_prints_the_bandwidth_of_links(run: Run) -> None:
    assert "16 GB/s" in run("show", "cpu:4,gpu:2x5.0@16GB/s").out


def test_convert_there_and_back_keeps_the_plan(run: Run, diamond: Path, tmp_path: Path) -> None:
    flow, back = tmp_path / "flow.wf.json", tmp_path / "back.stretto.json"
    assert run("convert", diamond, flow, "--output", "quiet").out == f"{flow}\n"
    assert run("convert", flow, back).code == 0
    plan = ("-c", CLUSTER, "--output", "quiet")
    assert float(run("plan", back, *plan).out) == pytest.approx(float(run("plan", diamond, *plan).out))


@pytest.mark.parametrize(("ending", "mark"), [("png", b"\x89PNG"), ("svg", b"<svg"), ("html", b"<html")])
def test_gantt_of_a_graph(run: Run, diamond: Path, tmp_path: Path, ending: str, mark: bytes) -> None:
    picture = tmp_path / f"picture.{ending}"
    ran = run("gantt", diamond, "-c", CLUSTER, "-o", picture, "--output", "quiet")
    assert ran.out == f"{picture}\n"
    assert mark in picture.read_bytes()


def test_gantt_of_a_plan(run: Run, diamond: Path, tmp_path: Path) -> None:
    saved, picture = tmp_path / "plan.json", tmp_path / "picture.html"
    planned = run("plan", diamond, "-c", CLUSTER, "--policy", "peft", "--save", saved, "--output", "json").json
    ran = run("gantt", saved, "-o", picture, "--output", "json")
    assert ran.json["makespan_s"] == planned["makespan_s"]
    assert "diamond by peft" in picture.read_text()


def test_version(run: Run) -> None:
    assert run("version", "--output", "quiet").out == f"{__version__}\n"
    assert run("version", "--output", "json").json["stretto"] == __version__
    assert run("version").out.startswith(f"stretto {__version__} ")


def test_help_documents_the_exit_codes(run: Run) -> None:
    for ran in (run("--help"), run()):
        assert ran.code == 0
        for word in ("Exit codes", "130", "plan", "simulate"):
            assert word in ran.out


@pytest.mark.parametrize(
    ("source", "cluster"),
    [
        ("taskgraphs/dax-Montage_25.xml.gz", "cpu:4@125MB/s"),
        ("dataflow/dnnpart-latency-LayerGraphs-bert24_inference.json.gz", "gpu:2"),
        ("dataflow/doppler-gdp_chain_mm_112nodes.txt", "gpu:4"),
        ("taskgraphs/decima-tpch-2g.json.gz#0", "cpu:8"),
    ],
)
def test_real_files_are_shown_and_planned(run: Run, data_dir: Path, source: str, cluster: str) -> None:
    path = data_dir / source
    shown = run("show", path, "--output", "json")
    planned = run("plan", path, "-c", cluster, "--output", "json")
    assert (shown.code, planned.code) == (0, 0), shown.err + planned.err
    assert shown.json["num_tasks"] == planned.json["num_tasks"] > 1
    assert planned.json["makespan_s"] >= planned.json["lower_bound_s"] * (1 - 1e-9) > 0
