"""Inputs that fuzzing found: each ended with a traceback once, and is an error of one line, or left out, since."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest
import test_kineto

from files.traces import trace_samples
from integrations import nextflow_run
from stretto import api
from stretto.api.inputs import with_dims
from stretto.api.options import PoolShape
from stretto.api.plan_file import load_plan
from stretto.cli.main import main
from stretto.cli.sources import parse_window
from stretto.core.cluster import Cluster
from stretto.engines.slurm.client.jobs import Factors, parse_factors, parse_nodes
from stretto.engines.slurm.engine.run_folder import Entry, read_log
from stretto.engines.slurm.steer.label_store import LabelStore
from stretto.errors import InvalidInput
from stretto.files.document import Document, read_document
from stretto.files.graphs.nextflow.needs import process_needs
from stretto.files.graphs.nextflow.trace import read_trace_rows
from stretto.files.graphs.pytorch.execution_trace import FORMAT as EXECUTION
from stretto.files.graphs.snakemake import records
from stretto.files.graphs.stg import FORMAT as STG
from stretto.queues.promises.slack import SlackTable
from stretto.runlog import RunLog

LONG = "9" * 5000


@pytest.mark.parametrize("call", [api.load_cluster, api.load, api.load_site, api.load_pools, api.load_trace])
@pytest.mark.parametrize("text", ["cpu:2," * 100, "x" * 5000, "a\0b"], ids=["list", "name", "null"])
def test_a_text_that_no_file_is_called_is_refused(call: Callable[[str], object], text: str) -> None:
    with pytest.raises(InvalidInput):
        call(text)


def test_a_long_cluster_is_still_a_cluster(capsys: pytest.CaptureFixture[str]) -> None:
    cluster = ",".join(f"k{number}:1" for number in range(200))
    assert main(["plan", "workload:fft?num_points=4", "-c", cluster, "--output", "quiet"]) == 0
    assert float(capsys.readouterr().out) > 0


def test_a_name_with_a_null_byte_is_no_file() -> None:
    with pytest.raises(InvalidInput, match="null"):
        read_document("a\0b")


@pytest.mark.parametrize("text", [f"1:{LONG}", f"{LONG}:1", "²:1", "1:³"])
def test_windows_are_short_numbers(text: str) -> None:
    with pytest.raises(InvalidInput, match="START:COUNT"):
        parse_window(text)


@pytest.mark.parametrize("size", [LONG, "²", "٣"])
def test_sizes_and_counts_are_short_numbers(size: str) -> None:
    with pytest.raises(InvalidInput, match="batch=8"):
        with_dims("model.onnx", [f"batch={size}"])
    with pytest.raises(InvalidInput, match="0-16"):
        PoolShape(nodes=size)


def test_a_header_of_nextflow_with_a_stray_return_is_told() -> None:
    text = nextflow_run.trace_text(raw=True).replace("\t", "\ra\t", 1)
    with pytest.raises(InvalidInput, match="new-line"):
        read_trace_rows(Document("trace.txt", text.encode()))


def test_an_exit_code_of_nextflow_may_be_anything() -> None:
    header, first, *others = nextflow_run.trace_text(raw=True).splitlines()
    values = first.split("\t")
    values[header.split("\t").index("exit")] = LONG
    document = Document("trace.txt", "\n".join([header, "\t".join(values), *others]).encode())
    assert process_needs(read_trace_rows(document))


@pytest.mark.parametrize("axis", [10**400, 2**51])
def test_a_shape_of_an_execution_trace_has_a_limit(axis: int) -> None:
    body = json.dumps(test_kineto.execution(True)).replace("[4, 4]", f"[4, {axis}]")
    assert str(axis) in body
    with pytest.raises(InvalidInput, match=r"2\^50"):
        EXECUTION.read(Document("trace.json", body.encode()))


@pytest.mark.parametrize("uid", [[], {}, 3])
def test_an_identity_of_kubernetes_is_text(uid: object) -> None:
    body = json.loads(trace_samples.kubernetes_list())
    for item in body["items"]:
        item["metadata"]["uid"] = uid
        for owner in item["metadata"].get("ownerReferences", []):
            owner["uid"] = uid
    assert trace_samples.read_text(json.dumps(body)).num_jobs > 0


@pytest.mark.parametrize("text", [f"cpu:{LONG}", "cpu:0"])
def test_a_cluster_has_a_number_of_devices_in_range(text: str) -> None:
    with pytest.raises(InvalidInput, match="between 1 and"):
        Cluster.parse(text)


@pytest.mark.parametrize("text", ["1.2.3", "9..", "24h,user:a=1..2"])
def test_a_slack_with_two_points_is_refused(text: str) -> None:
    with pytest.raises(InvalidInput, match="24h"):
        SlackTable.parse(text)


def test_superscripts_are_no_numbers_of_a_graph() -> None:
    assert not STG.matches(Document("x", "3\n0 1 ²\n".encode()))


@pytest.mark.parametrize(
    "change",
    [{"output": {}}, {"end_unix_s": "9"}, {"seconds": None}, {"seconds": 10**400}, {"input_bytes": "x"}, {"cores": []}],
)
def test_records_of_snakemake_with_wrong_values_are_left_out(change: dict[str, object], tmp_path: Path) -> None:
    good = {"rule": "map", "seconds": 3.5, "output": "a", "input_bytes": 5.0, "end_unix_s": 9.0}
    path = tmp_path / records.OWN_LOG
    path.parent.mkdir(parents=True)
    path.write_text(f"{json.dumps(good | change)}\n{'[' * 9000}\n{json.dumps(good)}\n")
    assert [record.seconds for record in records.read_history(tmp_path).records] == [3.5]


def test_inputs_of_snakemake_that_no_file_is_called_have_no_size() -> None:
    assert records.total_bytes(["a\0b"]) is None


def test_priorities_of_slurm_that_are_no_numbers_are_left_out() -> None:
    text = f"²|0|5|1\n{LONG}|0|5|1\n7|{LONG}|5|1\n8|-3|5|1\n"
    assert parse_factors(text) == {8: Factors(-3)}


def test_a_node_with_countless_gpus_has_none() -> None:
    (node,) = parse_nodes(json.dumps({"nodes": [{"name": "n", "cpus": 1, "gres": f"gpu:{LONG},gpu:²,gpu:2"}]}))
    assert node.num_gpus == 2


def test_labels_that_are_nested_without_end_are_refused(tmp_path: Path) -> None:
    (tmp_path / "labels.json").write_text("[" * 9000)
    with pytest.raises(InvalidInput, match="steering labels"):
        LabelStore.read(tmp_path / "labels.json")


def test_a_plan_may_name_a_cluster_that_no_file_is_called(tmp_path: Path) -> None:
    path = tmp_path / "plan.json"
    path.write_text(json.dumps({"graph_source": "workload:fft?num_points=4", "cluster_source": "cpu:2," * 90}))
    with pytest.raises(InvalidInput, match="KIND"):
        load_plan(path, None, None)


def test_a_damaged_log_of_a_task_names_its_line() -> None:
    assert read_log("start 1 5.0 3 n1\nend 1 6") == [Entry("start", 1, 5.0, node="n1")]
    with pytest.raises(InvalidInput, match=r"7\.log:2: 'end 1 x 0 ok'"):
        read_log("start 1 5.0 3 n1\nend 1 x 0 ok\n", "7.log")


@pytest.mark.parametrize("statement", ["DROP TABLE events", "UPDATE events SET fields = '{'", "DROP TABLE artifacts"])
def test_a_damaged_run_log_is_told(statement: str, tmp_path: Path) -> None:
    path = tmp_path / "runs.db"
    with RunLog.open(path) as log:
        run = log.start("plan", "x", {})
        run.record("task", start_s=1.0)
    with sqlite3.connect(path) as connection:
        connection.execute(statement)
    with RunLog.open(path, is_read_only=True) as log, pytest.raises(InvalidInput, match=r"runs\.db: cannot be read"):
        print(log.events(run.id), log.artifacts(run.id))


def test_a_run_log_with_torn_pages_is_told(tmp_path: Path) -> None:
    path = tmp_path / "runs.db"
    with RunLog.open(path) as log:
        for number in range(50):
            log.start("plan", f"run {number}", {"text": "x" * 200}).finish("done", {})
    data = bytearray(path.read_bytes())
    for page in range(2, len(data) // 4096):
        data[page * 4096 : page * 4096 + 2000] = b"\xff" * 2000
    path.write_bytes(bytes(data))
    with RunLog.open(path, is_read_only=True) as log, pytest.raises(InvalidInput, match="damaged"):
        log.runs()
