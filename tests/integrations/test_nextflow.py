"""Traces of Nextflow in all documented forms, their edges, what processes need, and the configuration."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

import stretto
from integrations.nextflow_run import DOT, MERMAID, TASKS, duration_text, trace_text, write_work
from stretto.cli.app import app
from stretto.core.graph import TaskGraph
from stretto.core.provenance import duration_basis
from stretto.errors import InvalidInput
from stretto.files.document import Document
from stretto.files.graphs.nextflow.needs import ONE_TASK_SD, predicted_quantile, process_needs
from stretto.files.graphs.nextflow.trace import read_trace_rows

EXPECTED = {(parent, task[0]) for task in TASKS for parent in task[8]}


def named_edges(graph: TaskGraph) -> set[tuple[int, int]]:
    number = {task[3]: task[0] for task in TASKS}
    return {
        (number[graph.task_name(int(graph.object_task[place]))], number[graph.task_name(reader)])
        for place in range(len(graph.object_task))
        for reader in graph.object_reader[graph.object_ptr[place] : graph.object_ptr[place + 1]].tolist()
    }


@pytest.fixture
def run(tmp_path: Path) -> Path:
    (tmp_path / "trace.txt").write_text(trace_text())
    write_work(tmp_path / "work")
    return tmp_path


@pytest.mark.parametrize("separator", ["\t", ",", ";"])
def test_raw_and_readable_traces_say_the_same(separator: str) -> None:
    raw = read_trace_rows(Document("t", trace_text(raw=True, separator=separator).encode()))
    plain = read_trace_rows(Document("t", trace_text(separator=separator).encode()))
    assert len(raw) == len(plain) == len(TASKS)
    for one, other, task in zip(raw, plain, TASKS):
        assert one.realtime_s == pytest.approx(task[6] / 1000)
        assert other.realtime_s == pytest.approx(task[6] / 1000, abs=0.5)
        assert one.peak_rss_bytes == task[5] * 2**20
        assert other.peak_rss_bytes == pytest.approx(task[5] * 2**20, rel=1e-3)
        assert one.cpu_share == other.cpu_share == task[7] / 100
        assert one.submit_s == pytest.approx(other.submit_s, abs=0.01)
        assert (one.process, one.tag, one.cpus) == (other.process, other.tag, float(task[4]))
        assert one.write_bytes is None  # "-"


@given(st.integers(1, 10**9))
def test_every_printed_duration_is_read_back(milliseconds: int) -> None:
    text = "task_id\thash\tname\tstatus\trealtime\n1\tab/cdef00\tX\tCOMPLETED\t" + duration_text(milliseconds) + "\n"
    found = read_trace_rows(Document("t", text.encode()))[0].realtime_s
    assert found == pytest.approx(milliseconds / 1000, abs=1.0 if milliseconds >= 60_000 else 1e-6)


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("realtime", "soon", "not a duration"),
        ("peak_rss", "1.2 pounds", "not a size"),
        ("submit", "Monday", "not a date"),
    ],
)
def test_a_wrong_value_names_its_line_and_field(field: str, value: str, message: str) -> None:
    text = f"task_id\thash\tname\tstatus\t{field}\n1\tab/cdef00\tX\tCOMPLETED\t-\n2\tab/cdef01\tX\tCOMPLETED\t{value}\n"
    with pytest.raises(InvalidInput, match=message) as caught:
        read_trace_rows(Document("trace.txt", text.encode()))
    assert (caught.value.line, caught.value.field) == (3, field)


@pytest.mark.parametrize("as_links", [True, False])
def test_staged_inputs_of_the_work_directory_are_the_edges(tmp_path: Path, as_links: bool) -> None:
    (tmp_path / "trace.txt").write_text(trace_text(raw=True))
    write_work(tmp_path / "work", as_links=as_links)
    graph = stretto.load(tmp_path / "trace.txt")
    assert isinstance(graph, TaskGraph)
    assert named_edges(graph) == EXPECTED
    assert duration_basis(graph) == "recorded"
    assert sorted(graph.object_size.tolist())[-1] == 4000.0
    assert graph.cores is not None
    assert graph.cores.tolist() == [float(task[4]) for task in TASKS]
    assert graph.memory_bytes is not None
    assert graph.memory_bytes.tolist() == [task[5] * 2**20 for task in TASKS]
    assert stretto.plan(tmp_path / "trace.txt", "cpu:2").makespan_s >= 4000.0


@pytest.mark.parametrize(("name", "text"), [("flow.dot", DOT), ("flow.mmd", MERMAID)])
def test_edges_of_the_process_graph_are_assumed(run: Path, name: str, text: str) -> None:
    (run / name).write_text(text)
    done = stretto.nextflow(run / "trace.txt", dag=run / name)
    assert done.graph is not None
    assert named_edges(done.graph) == EXPECTED
    assert duration_basis(done.graph).startswith("assumed")


def test_edges_of_a_wfformat_file(run: Path) -> None:
    names = {task[0]: f"{task[3].split()[0].replace(':', '.')}_{task[0]}" for task in TASKS}
    tasks = [
        {"id": names[t[0]], "name": names[t[0]], "parents": [names[p] for p in t[8]], "children": []} for t in TASKS
    ]
    body = {
        "name": "run",
        "schemaVersion": "1.5",
        "workflow": {
            "specification": {"tasks": tasks, "files": []},
            "execution": {"tasks": [{"id": name, "runtimeInSeconds": 1.0} for name in names.values()], "machines": []},
        },
    }
    (run / "run.json").write_text(json.dumps(body))
    done = stretto.nextflow(run / "trace.txt", dag=run / "run.json")
    assert done.graph is not None
    assert named_edges(done.graph) == EXPECTED
    assert done.edges == "recorded (run.json)"
    tasks[0]["id"] = body["workflow"]["execution"]["tasks"][0]["id"] = "NF.OTHER_99"  # type: ignore[index]
    tasks[2]["parents"] = tasks[4]["parents"] = []
    (run / "run.json").write_text(json.dumps(body))
    with pytest.raises(InvalidInput, match=r"NF\.OTHER_99"):
        stretto.nextflow(run / "trace.txt", dag=run / "run.json")


def test_a_trace_alone_is_no_graph(tmp_path: Path) -> None:
    (tmp_path / "trace.txt").write_text(trace_text())
    with pytest.raises(InvalidInput, match="--work DIR"):
        stretto.load(tmp_path / "trace.txt")


def test_a_work_directory_of_another_run_is_refused(tmp_path: Path) -> None:
    text = trace_text(raw=True).splitlines()
    text[3] = text[3].replace("1790000080000\t1790000081000", "1790000000000\t1790000001000")  # before its parent ended
    (tmp_path / "trace.txt").write_text("\n".join(text))
    write_work(tmp_path / "work")
    with pytest.raises(InvalidInput, match="of one run"):
        stretto.load(tmp_path / "trace.txt")


def test_failed_attempts_are_no_tasks_but_count_as_needs() -> None:
    killed = trace_text().splitlines()[3].split("\t")
    killed[0:2], killed[4], killed[5] = ["9", "cc/000000"], "FAILED", "137"
    killed[FIELD["memory"]], killed[FIELD["peak_rss"]] = "4 GB", "3.9 GB"
    rows = read_trace_rows(Document("t", trace_text(more=(killed,)).encode()))
    align = process_needs(rows)[1]
    assert (align.num_tasks, align.num_killed) == (2, 1)
    assert align.memory_bytes is not None
    assert align.memory_bytes > 4 * 2**30


FIELD = {name: place for place, name in enumerate(trace_text().splitlines()[0].split("\t"))}


def test_needs_are_below_what_was_asked_and_never_below_what_was_used(run: Path) -> None:
    fastqc, align, multiqc = stretto.nextflow(run / "trace.txt").needs
    assert (fastqc.cpus, align.cpus, multiqc.cpus) == (2, 4, 1)
    for item in (fastqc, align, multiqc):
        assert item.memory_bytes is not None
        assert item.peak_memory_bytes is not None
        assert item.peak_memory_bytes <= item.memory_bytes < 8 * 2**30
        assert item.time_s is not None
        assert item.longest_s is not None
        assert item.longest_s <= item.time_s


@given(st.lists(st.floats(1.0, 1e12), min_size=1, max_size=20), st.floats(0.5, 0.99))
def test_a_quantile_is_never_below_the_peak_and_grows(values: list[float], quantile: float) -> None:
    found = predicted_quantile(values, quantile)
    assert max(values) <= found <= 4.001 * max(values)
    assert predicted_quantile(values, 0.995) >= found


def test_quantiles_hold_on_values_not_seen() -> None:
    import numpy as np

    rng = np.random.default_rng(0)
    for count, spread in ((5, 0.3), (20, 0.5), (50, 1.0)):
        covered = []
        for _ in range(300):
            values = np.exp(rng.normal(0.0, spread, count + 1))
            covered.append(values[-1] <= predicted_quantile(values[:-1].tolist(), 0.9))
        assert np.mean(covered) > 0.86, (count, spread)
    assert ONE_TASK_SD < 1


def test_the_configuration(run: Path) -> None:
    nodes = run / "nodes.toml"
    small = '[[node]]\nname = "small"\nkind = "n2-standard-2"\ncount = 3\ncores = 2\nmemory = "4GB"\n'
    large = '[[node]]\nname = "large"\nkind = "n2-standard-8"\ncount = 2\ncores = 8\nmemory = "32GB"\n'
    nodes.write_text(f"{small}price_usd_per_hour = 0.1\n{large}price_usd_per_hour = 0.4\n")
    target = run / "nextflow.config"
    arguments = ["nextflow", str(run / "trace.txt"), "-c", str(nodes), "--config", str(target)]
    shown = CliRunner().invoke(app, [*arguments, "--work", str(run / "work"), "--graph", str(run / "run.json")])
    assert shown.exit_code == 0, shown.output
    text = target.read_text()
    assert "withName: 'NF:FASTQC' {" in text
    assert "cpus = 2\n" in text
    assert ".MB * task.attempt }" in text
    assert ".min * task.attempt }" in text
    assert "machineType = 'n2-standard-2'\n" in text
    assert text.count("machineType = 'n2-standard-8'") == 1
    assert "maxForks = 4\n" in text  # two tasks with four CPUs on each of two nodes
    assert "95% quantile" in text
    assert text.count("{") == text.count("}")
    assert stretto.load(run / "run.json").num_tasks == 5
    queue = CliRunner().invoke(app, [*arguments, "--directive", "queue"])
    assert queue.exit_code == 0
    assert "queue = 'n2-standard-8'" in target.read_text()


def test_options_that_do_not_apply_are_errors(run: Path) -> None:
    trace = str(run / "trace.txt")
    for arguments in (
        ["--directive", "queue"],
        ["--graph", str(run / "g.json")],
        ["-c", "cpu:4"],
        ["--quantile", "1.5"],
    ):
        assert CliRunner().invoke(app, ["nextflow", trace, *arguments]).exit_code != 0
