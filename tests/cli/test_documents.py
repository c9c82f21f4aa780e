"""The documents are true: their tables are current, their code runs, their links lead somewhere."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
import types
from pathlib import Path

import pytest

from stretto import catalog
from stretto.core.cluster import Cluster
from stretto.core.graph import TaskGraph
from stretto.core.problem import Problem
from stretto.files.clusters.cluster_toml import read_cluster
from stretto.files.document import Document
from stretto.files.load import load
from stretto.graphs.evaluate import evaluate
from stretto.workloads import generate

from .conftest import Run

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])


def _blocks(page: str, language: str) -> list[str]:
    pattern = re.compile(rf"^```{re.escape(language)}\n(.*?)^```$", re.DOTALL | re.MULTILINE)
    return pattern.findall((ROOT / page).read_text())


def _module(name: str, source: str, monkeypatch: pytest.MonkeyPatch) -> types.ModuleType:
    module = types.ModuleType(name)
    monkeypatch.setitem(sys.modules, name, module)
    exec(compile(source, name, "exec"), module.__dict__)
    return module


def test_the_tables_are_up_to_date() -> None:
    done = subprocess.run(
        [sys.executable, ROOT / "docs" / "make_tables.py", "--check"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_between_pages_lead_somewhere(page: Path) -> None:
    text = re.sub(r"^```.*?^```$", "", page.read_text(), flags=re.DOTALL | re.MULTILINE)
    for target in re.findall(r"\]\(([^)#]+)[^)]*\)", text):
        if "://" not in target:
            assert (page.parent / target).exists(), f"{page.name} points to {target}"


@pytest.mark.parametrize("text", _blocks("docs/clusters.md", "toml"))
def test_cluster_files_of_the_documentation_are_read(text: str) -> None:
    assert read_cluster(Document("clusters.md", text.encode())).num_devices >= 3


def test_cluster_shorthand_of_the_documentation_is_read() -> None:
    (block,) = _blocks("docs/clusters.md", "shorthand")
    assert [Cluster.parse(line).num_devices for line in block.split()] == [8, 10, 4, 8, 4, 4]


def test_the_documented_rules_of_kinds_mean_what_the_page_says() -> None:
    text = next(block for block in _blocks("docs/clusters.md", "toml") if "[kinds.fpga]" in block)
    cluster = read_cluster(Document("clusters.md", text.encode()))
    graph = TaskGraph.from_edges(
        [8.0, 8.0], [], [], kinds=("cpu",), kind_duration_s=_column([8.0, 8.0]), **_categories("gemm_fp8", "io_read")
    )
    duration = Problem.of(graph, cluster).device_duration
    cpu, fpga = 0, 8
    assert duration[0, cpu] == float("inf")
    assert duration[0, fpga] == 0.4  # "gemm*" stands after "*" and counts
    assert duration[1].tolist() == [8.0] * 8 + [float("inf")] * 2


def _column(values: list[float]) -> object:
    import numpy as np

    return np.array(values)[:, None]


def _categories(*names: str) -> dict[str, object]:
    import numpy as np

    return {"categories": names, "category": np.arange(len(names), dtype=np.int32)}


def test_the_policy_of_the_contributing_guide_works(monkeypatch: pytest.MonkeyPatch) -> None:
    (source,) = _blocks("CONTRIBUTING.md", "python policy")
    _module("guide_policy", source, monkeypatch)
    monkeypatch.setitem(catalog.PLANNERS, "least-loaded", "guide_policy:LeastLoaded")
    problem = Problem.of(generate("cholesky", num_tiles=5), Cluster.parse("cpu:3,gpu:1"))
    result = evaluate(problem, "least-loaded", params={"weight": 0.5})
    assert result.schedule.discipline == "work-conserving"
    assert result.makespan_s >= result.lower_bound_s > 0
    assert len(set(result.plan.assignment.tolist())) == 4


def test_the_format_of_the_contributing_guide_works(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (source,) = _blocks("CONTRIBUTING.md", "python format")
    _module("guide_format", source, monkeypatch)
    monkeypatch.setitem(catalog.FORMATS, "arrows", "guide_format:FORMAT")
    path = tmp_path / "graph.arrows"
    path.write_text("a 2.5\nb 1\na -> b 1MB\n")
    graph = load(path)
    assert isinstance(graph, TaskGraph)
    assert graph.work_s.tolist() == [2.5, 1.0]
    assert graph.object_size.tolist() == [1e6]
    path.write_text("a 2.5\na -> c 1MB\n")
    with pytest.raises(Exception, match=r"graph.arrows:2.*unknown task 'c'"):
        load(path)


def test_the_workload_of_the_contributing_guide_works(monkeypatch: pytest.MonkeyPatch) -> None:
    (source,) = _blocks("CONTRIBUTING.md", "python workload")
    _module("guide_workload", source, monkeypatch)
    monkeypatch.setitem(catalog.WORKLOADS, "chain", "guide_workload:chain")
    assert generate("chain", num_tasks=7).num_edges == 6


def test_the_commands_of_the_readme_run(run: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    commands = re.findall(r"^\$ stretto (.*)$", (ROOT / "README.md").read_text(), re.MULTILINE)
    assert len(commands) >= 4
    for command in commands:
        ran = run(*shlex.split(command))
        assert ran.code == 0, f"{command}: {ran.err}"


def test_the_python_of_the_readme_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    blocks = _blocks("README.md", "python")
    assert blocks
    for number, source in enumerate(blocks):
        _module(f"readme_{number}", source, monkeypatch)


@pytest.mark.parametrize(
    ("name", "lines"),
    [
        ("plan_a_workflow", [r"tasks on 4 own machines", r"makespan [\d.]+ s, at most [\d.]+%", r"on average"]),
        ("place_a_model", [r"operations on gpu:2x1.0", r"no placement is", r"heft: [\d.]+ ms", r"annealing: "]),
        ("compare_policies", [r"policy +best on", r"annealing +\d", r"heft +\d"]),
    ],
)
def test_examples_run_and_print_what_they_should(name: str, lines: list[str]) -> None:
    script = ROOT / "examples" / f"{name}.py"
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    for line in lines:
        assert re.search(line, done.stdout), done.stdout
