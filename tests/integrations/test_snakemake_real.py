"""Real runs of Snakemake with the plugin, and its graph of jobs in Stretto."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

import stretto
from stretto.core.provenance import duration_basis
from stretto.errors import InvalidInput

pytest.importorskip("snakemake", reason="Snakemake is not installed: pip install 'stretto[snakemake]'")

SNAKEFILE = """
rule all:
    input: expand("short/{i}.txt", i=range(10)), "chain/3.txt"
rule short:
    output: "short/{i}.txt"
    shell: "echo short >> starts; sleep 0.1; touch {output}"
rule chain:
    input: lambda w: f"chain/{int(w.k) - 1}.txt" if int(w.k) else []
    output: "chain/{k}.txt"
    threads: 1
    resources: mem_mb=200
    benchmark: "bench/{k}.tsv"
    shell: "echo chain{wildcards.k} >> starts; sleep 0.4; head -c 1000 /dev/zero > {output}"
"""


def run_snakemake(folder: Path, *options: str) -> str:
    command = [sys.executable, "-m", "snakemake", "--scheduler", "stretto", *options]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stderr


@pytest.fixture(scope="module")
def learned(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """A workflow after two runs, with the messages of the second."""
    folder = tmp_path_factory.mktemp("flow")
    (folder / "Snakefile").write_text(SNAKEFILE)
    run_snakemake(folder, "--cores", "2")
    (folder / "starts").unlink()
    return folder, run_snakemake(folder, "--cores", "2", "--forceall")


def test_the_chain_is_never_kept_waiting(learned: tuple[Path, str]) -> None:
    folder, messages = learned
    starts = (folder / "starts").read_text().split()
    assert starts.count("short") == 10
    first = [starts.index(f"chain{k}") for k in range(4)]
    assert first == sorted(first)
    assert first[0] <= 1
    # Four short jobs end while one job of the chain runs; a step that waited would see many more.
    assert all(after - before <= 6 for before, after in zip(first, first[1:]))
    assert "15 of 15 jobs have forecasts" in messages
    assert "greedy" not in messages


def test_the_graph_of_a_directory_with_a_snakefile(learned: tuple[Path, str]) -> None:
    graph = stretto.load(learned[0])
    names = [graph.task_name(task) for task in range(graph.num_tasks)]
    assert len(names) == 15
    assert duration_basis(graph) == "estimated (from earlier runs of Snakemake)"
    last = names.index("chain (k=3)")
    assert 0.3 < graph.work_s[last] < 1.5
    assert graph.work_s[names.index("all")] == 0.0
    assert graph.cores is not None
    assert graph.cores[last] == 1
    assert graph.memory_bytes is not None
    assert graph.memory_bytes[last] == 200e6
    assert graph.object_size.max() == 1000.0
    assert stretto.plan(learned[0], "cpu:2").makespan_s < 3.5


def test_without_runs_the_durations_are_assumed(tmp_path: Path) -> None:
    (tmp_path / "workflow").mkdir()
    (tmp_path / "workflow" / "Snakefile").write_text(SNAKEFILE)
    graph = stretto.load(tmp_path)
    assert graph.num_tasks == 15
    assert duration_basis(graph).startswith("assumed (14 of 15 jobs")


def test_a_snakefile_that_fails_says_why(tmp_path: Path) -> None:
    (tmp_path / "Snakefile").write_text("rule all:\n    input: 'missing.txt'\n")
    with pytest.raises(InvalidInput, match=r"missing\.txt"):
        stretto.load(tmp_path / "Snakefile")


@pytest.mark.parametrize("name", ["wide", "deep", "mixed"])
def test_the_workflows_of_the_benchmark_run_whole(name: str, tmp_path: Path) -> None:
    """At least 60 jobs on two cores; once durations are learned, the long sample of ``mixed`` never waits."""
    sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "benchmarks"))
    from snakemake_runs import run_once, write_workflow

    write_workflow(tmp_path, name)
    run_once(tmp_path, "stretto")
    assert (tmp_path / "done.txt").is_file()
    log = (tmp_path / ".snakemake" / "stretto" / "jobs.jsonl").read_text().splitlines()
    assert len(log) >= 60
    if name != "mixed":
        return
    run_once(tmp_path, "stretto")
    lines = (tmp_path / ".snakemake" / "stretto" / "jobs.jsonl").read_text().splitlines()
    second = [json.loads(line) for line in lines[len(log) :]]
    times = [(one["end_unix_s"] - one["seconds"], one["end_unix_s"], "s7" in one["output"]) for one in second]
    long = sorted((begin, end) for begin, end, is_long in times if is_long)
    assert len(long) == 6
    assert sum(begin < long[0][0] for begin, _, _ in times) <= 2
    # The other core may start a job or two while Snakemake notices the end of a step; a step that waited sees many.
    for (_, end), (begin, _) in zip(long, long[1:], strict=False):
        assert sum(end <= other < begin for other, _, _ in times) <= 3
