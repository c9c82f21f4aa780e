"""Everything that reads what a user or another program has written, as functions of bytes, with inputs that are right.

A reader may answer or raise a StrettoError, and nothing else. Formats come from the catalog: a new one is fuzzed by
itself; ``test_fuzz.py`` checks that each reader understands at least one of its inputs.
"""

from __future__ import annotations

import base64
import contextlib
import io
import json
import os
import tarfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from fuzzing import file_seeds as seeds
from fuzzing import web_seeds
from fuzzing.damage import MAX_BYTES
from research.readers.hwloc import read_hwloc
from research.readers.write_machines import write_rack

from files import format_samples as samples
from files.clusters import site_samples
from integrations import nextflow_run
from stretto import catalog, registry
from stretto.api.inputs import parse_params
from stretto.api.plan_file import load_plan
from stretto.cli.sources import parse_window
from stretto.config import read_settings
from stretto.core import units
from stretto.core.cluster import Cluster
from stretto.core.machine_presets import preset
from stretto.core.pool import Pool
from stretto.core.problem import Problem
from stretto.engines.completion_log import pack_completion, read_completions
from stretto.engines.slurm.client import jobs as slurm_jobs
from stretto.engines.slurm.engine.run_folder import read_log
from stretto.engines.slurm.steer.label_store import LabelStore
from stretto.engines.workflow_file import load_workflow
from stretto.errors import StrettoError
from stretto.files import checkpoint
from stretto.files.clusters.cluster_toml import read_cluster
from stretto.files.clusters.host_list import expand_hosts
from stretto.files.clusters.machine_toml import read_rack
from stretto.files.clusters.pool_toml import parse_pools, read_pools, write_pools
from stretto.files.cost_table import read_cost_table
from stretto.files.document import Document, unpack
from stretto.files.graphs.nextflow.graph import nextflow_graph
from stretto.files.graphs.nextflow.needs import process_needs
from stretto.files.graphs.nextflow.trace import read_trace_rows
from stretto.files.graphs.snakemake import records
from stretto.files.plan_json import plan_to_json, read_plan
from stretto.files.prices.availability import read_availability
from stretto.files.prices.carbon import parse_moment, read_carbon
from stretto.files.prices.catalogue import read_catalogue
from stretto.files.prices.spot_series import spot_prices
from stretto.files.traces.reader import ReadOptions
from stretto.files.traces.submit_line import read_dependency, read_submit_line
from stretto.queues.promises.slack import SlackTable
from stretto.queues.when.change import RequestChange
from stretto.reports.problem import plan_of, problem_of
from stretto.runlog import RunLog
from stretto.testing.engine_checks import random_graph, random_plan

Read = Callable[[bytes], object]


class Reader(NamedTuple):
    """What is called with an input.

    Attributes
    ----------
    seeds
        Inputs that it understands.
    share
        Of the inputs of a reader that is fast; less where a process, a file or a whole command is behind it.
    """

    read: Read
    seeds: Sequence[bytes]
    share: float = 1.0


def all_readers(folder: Path) -> dict[str, Reader]:
    """Return every reader by name; ``folder`` is for those that want files."""
    found = {f"graph {name}": _graph(name) for name in catalog.FORMATS}
    found |= {f"trace {name}": _trace(name) for name in catalog.TRACES}
    found |= {f"site {name}": _site(name) for name in catalog.SITES}
    for part in (_machines, _plans, _prices, _workflows, _logs, _slurm, _words, _requests, _command_line):
        found |= part(folder)
    return found


def _graph(name: str) -> Reader:
    form = registry.lookup("format", name, catalog.FORMATS)

    def read(data: bytes) -> object:
        document = Document("fuzz", unpack(data, "fuzz", max_bytes=MAX_BYTES))
        form.matches(document)
        return form.read(document)

    # ONNX asks a child process for the shapes of every model that it understands.
    return Reader(read, seeds.of_graphs(name), 0.02 if name == "onnx" else 1.0)


def _trace(name: str) -> Reader:
    form = registry.resolve(catalog.TRACES[name])

    def read(data: bytes) -> object:
        document = Document("fuzz", unpack(data, "fuzz", max_bytes=MAX_BYTES))
        form.matches(document)
        return form.read(document, ReadOptions(strict=len(data) % 2 == 0, dependencies=True)).arrays()

    return Reader(read, seeds.of_traces(name))


def _site(name: str) -> Reader:
    form = registry.resolve(catalog.SITES[name])

    def read(data: bytes) -> object:
        document = Document("fuzz", unpack(data, "fuzz", max_bytes=MAX_BYTES))
        form.matches(document)
        return form.read(document)

    return Reader(read, [site_samples.ALL[name].encode()])


def _machines(folder: Path) -> dict[str, Reader]:
    pools = write_pools([Pool("a", 3, procs_per_node=4, price_usd_per_hour=2.0), Pool("b", 1)])
    return {
        "cluster file": Reader(_document(read_cluster, "x.toml"), [samples.CLUSTER, samples.TOPOLOGY.encode()]),
        "cluster words": Reader(_text(Cluster.parse), [b"cpu:4x1.0,gpu:2x2.5@1GB/s", b"rtx-4090:2@10GB/s~5us"]),
        "pool file": Reader(_document(read_pools, "x.toml"), [pools]),
        "pool words": Reader(_text(parse_pools), [b"own:8x16,cloud:4x8@2.5", b"own:128*16,cloud:0-64*8@0.40~90s"]),
        "rack file": Reader(_document(read_rack, "x.toml"), [write_rack(preset("small-rack")).encode()]),
        "hwloc file": Reader(_document(read_hwloc, "x.xml"), [seeds.HWLOC]),
        "cost table": Reader(_by_file(folder / "costs.json", read_cost_table), [_COSTS]),
        "checkpoint": Reader(_by_file(folder / "state.npz", checkpoint.load), [_checkpoint(folder)]),
        "settings file": Reader(_settings(folder / "settings.toml"), [seeds.SETTINGS]),
    }


def _plans(folder: Path) -> dict[str, Reader]:
    graph, cluster = random_graph(np.random.default_rng(0), 8), Cluster.parse("cpu:2,gpu:1")
    problem = Problem.of(graph, cluster)
    plan = plan_to_json(random_plan(np.random.default_rng(0), graph, cluster), problem)
    sources = {"graph_source": "workload:fft?num_points=8", "cluster_source": "cpu:2,gpu:1"}
    return {
        "plan file": Reader(_document(lambda one: read_plan(one, problem), "x.json"), [json.dumps(plan).encode()]),
        "plan with sources": Reader(
            _by_file(folder / "plan.json", lambda path: load_plan(path, graph, None)),
            [json.dumps(plan | sources).encode()],
        ),
        "workflow file": Reader(_by_file(folder / "flow.toml", load_workflow), [seeds.WORKFLOW]),
    }


def _prices(folder: Path) -> dict[str, Reader]:
    from files.prices import test_availability, test_carbon, test_catalogue, test_series

    lists = [test_catalogue.SMALL.encode(), test_catalogue.PRICES.encode(), seeds.EC2]
    hours = "".join(f"2021-06-01T{hour:02}:00,DE,300.5,{400 + hour}\n" for hour in range(5))
    here = test_availability.HEADER + "us-a_p3,0,0,1\nus-a_p3,1,600,0\nus-b_p3,0,0,1\nus-b_p3,1,60,1\n"
    spot = test_series.SMALL.encode()
    return {
        "price list": Reader(_by_file(folder / "prices", read_catalogue), [*lists, _archive(lists[0])]),
        "carbon series": Reader(_by_file(folder / "carbon.csv", read_carbon), [(test_carbon.HEADER + hours).encode()]),
        "availability series": Reader(_by_file(folder / "here.csv", read_availability), [here.encode()]),
        "spot series": Reader(_by_file(folder / "spot.csv", lambda path: spot_prices(path, _instance(spot))), [spot]),
    }


def _workflows(folder: Path) -> dict[str, Reader]:
    """Return readers of what Snakemake and Nextflow leave behind."""
    trace = Document("trace.txt", nextflow_run.trace_text(raw=True).encode())
    dag, own = folder / "dag.dot", folder / records.OWN_LOG
    hidden = folder / records.METADATA / base64.urlsafe_b64encode(b"out.txt").decode()
    for path in (own, hidden):
        path.parent.mkdir(parents=True, exist_ok=True)
    return {
        "nextflow needs": Reader(_document(lambda one: process_needs(read_trace_rows(one)), "x.txt"), [trace.data]),
        "nextflow graph": Reader(
            _by_file(dag, lambda path: nextflow_graph(trace, dag=path)),
            [nextflow_run.DOT.encode(), nextflow_run.MERMAID.encode()],
        ),
        "snakemake metadata": Reader(_by_file(hidden, lambda _: records.read_history(folder)), [seeds.METADATA]),
        "snakemake log": Reader(_by_file(own, lambda _: records.read_history(folder)), [seeds.OWN_LOG]),
        "snakemake benchmark": Reader(_by_file(folder / "bench.tsv", records.read_benchmark), [seeds.BENCHMARK]),
    }


def _logs(folder: Path) -> dict[str, Reader]:
    ends = b"".join(pack_completion(name, {"device": 1}, name.encode()) for name in ("a", "b"))
    web_seeds.record(folder / "seed.db")
    return {
        "run log": Reader(_by_file(folder / "runs.db", _read_log), [(folder / "seed.db").read_bytes()], 0.2),
        "completion log": Reader(_by_file(folder / "x.ends", lambda path: [*read_completions(path)]), [ends]),
    }


def _read_log(path: Path) -> object:
    """Read all of a run log, as pages and reports do."""
    for suffix in ("-wal", "-shm"):  # of the file that was here before
        path.with_name(path.name + suffix).unlink(missing_ok=True)
    found: list[object] = []
    with RunLog.open(path, is_read_only=True) as log:
        for info in log.runs():
            found += log.events(info.id)
            if {"graph", "plan"} <= {name.partition(".")[0] for name in log.artifacts(info.id)}:
                found.append(plan_of(log, info.id, problem_of(log, info.id)))
    return found


def _slurm(folder: Path) -> dict[str, Reader]:
    """Return readers of what Slurm says, and of what its engine and its steering layer leave behind."""
    from engines.slurm import test_slurm_json as answers

    jobs = [json.dumps({"jobs": [entry], "errors": []}).encode() for entry in (answers.OLD, answers.NEW)]
    nodes = json.dumps({"nodes": [answers.NODE | {"state": ["IDLE"], "features": "fast,gpu"}]}).encode()
    line = b"sbatch -N2-4 --ntasks=8 --mem-per-cpu=4G --gres=gpu:a100:2 --array=1-9%3 -d afterok:5 job.sh 'a b'"
    return {
        "slurm jobs": Reader(_text(slurm_jobs.parse_jobs), jobs),
        "slurm nodes": Reader(_text(slurm_jobs.parse_nodes), [nodes]),
        "slurm factors": Reader(_text(slurm_jobs.parse_factors), [seeds.SPRIO]),
        "slurm task log": Reader(_text(read_log), [seeds.TASK_LOG]),
        "steering labels": Reader(_by_file(folder / "labels.json", LabelStore.read), [seeds.LABELS]),
        "submit line": Reader(_text(read_submit_line), [line]),
        "job dependency": Reader(_text(read_dependency), [b"afterok:5:7,afterany:9?singleton"]),
        "host list": Reader(_text(expand_hosts), [b"n[1-4,7],gpu[01-16]", b"rack[1-2]-n[1-3]"]),
    }


def _words(folder: Path) -> dict[str, Reader]:
    """Return readers of what people type."""
    return {
        "slack words": Reader(_text(SlackTable.parse), [b"24h+4e+1wait,partition:debug=1h,user:ada=2h", b"inf"]),
        "change words": Reader(_text(RequestChange.parse), [b"limit=2h,procs=16", b"nodes=2,partition=all"]),
        "size words": Reader(_text(units.parse_bytes), [b"16GB", b"2GiB"]),
        "rate words": Reader(_text(units.parse_rate), [b"10Gbit/s", b"1.5GB/s"]),
        "time words": Reader(_text(units.parse_seconds), [b"50us", b"2h"]),
        "money words": Reader(_text(units.parse_usd), [b"20USD", b"$20"]),
        "moment words": Reader(_text(lambda text: parse_moment(text, field="x")), [b"2021-06-01T08:00+02:00"]),
        "window words": Reader(_text(parse_window), [b"1000:5000"]),
        "parameter words": Reader(_text(lambda text: parse_params(text.split("&"))), [b"a=1&b=[1,2]&c=x"]),
    }


def _requests(folder: Path) -> dict[str, Reader]:
    """Return readers of bodies of the HTTP API; the routes themselves are asked by ``web_requests.py``."""
    from pydantic import ValidationError

    from stretto.web import models

    def reader(model: Any, route: str) -> Reader:
        def read(data: bytes) -> object:
            try:
                return model.model_validate(json.loads(data))
            except (ValidationError, ValueError, RecursionError) as error:  # as the web framework answers 422
                raise StrettoError(str(error)) from None

        return Reader(read, [json.dumps(body).encode() for body in web_seeds.bodies(route)])

    known = {"plan": models.PlanRequest, "replay": models.ReplayRequest}
    known |= {"when": models.WhenRequest, "what-if": models.WhatIfRequest}
    return {f"request {name}": reader(model, f"/api/{name}") for name, model in known.items()}


def _command_line(folder: Path) -> dict[str, Reader]:
    """Return a reader of whole command lines, one word a line, in an empty folder; nothing of it may be ours to fix."""
    from stretto.cli.exit_codes import EXIT_INTERNAL
    from stretto.cli.main import main

    def read(data: bytes) -> object:
        words = data.decode("utf-8", "replace").replace("\0", "").split("\n")
        if not words or words[0] not in _COMMANDS:
            words = ["show", *words]
        said = io.StringIO()
        with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
            code = main(words)
        text = said.getvalue()
        if code == EXIT_INTERNAL or "Traceback" in text:
            raise RuntimeError(f"exit code {code}: {text[-1000:]}")
        if code != 0:
            raise StrettoError(text[-300:])
        return text

    return {"command line": Reader(read, [line.encode() for line in _COMMAND_LINES], 0.05)}


#: Commands that start nothing: no server, no run, no training.
_COMMANDS = ("show", "plan", "bound", "compare", "replay", "simulate", "when", "explain", "convert", "list", "version")
_COMMAND_LINES = (
    "show\nworkload:fft?num_points=8",
    "show\ncpu:2,gpu:1x2.5@1GB/s",
    "show\ntrace:lublin?num_jobs=20&num_procs=16",
    "plan\nworkload:random-dag?num_tasks=9&seed=1\n-c\ncpu:2,gpu:1@1GB/s\n--policy\nheft\n--contention\nfair",
    "plan\nworkload:fft?num_points=8\n-c\ncpu:2\n--policy\nannealing\n--param\nmax_evaluations=20\n--time-limit\n1s",
    "bound\nworkload:cholesky?num_tiles=3\n-c\ncpu:2\n--output\njson",
    "compare\nworkload:fft?num_points=8\n-c\ncpu:2\n--policies\nheft,cpop",
    "replay\ntrace:lublin?num_jobs=20&num_procs=16\n--procs\n16\n--strategy\nsjf\n--backfill\neasy",
    "replay\ntrace:lublin?num_jobs=20&num_procs=16\n--pools\nown:2x8,cloud:4x8@2.5\n--window\n2:10",
    "replay\ntrace:lublin?num_jobs=20&num_procs=16\n--procs\n16\n--backfill\npromise\n--slack\n1h+2e",
    "when\ntrace:lublin?num_jobs=20&num_procs=16\n--procs\n16\n--job\nrow:15\n--if\nlimit=2h",
    "list\nstrategies",
)
_COSTS = json.dumps(
    {
        "format": "stretto-costs",
        "version": 1,
        "machine": "m",
        "busy_factor": 1.1,
        "kinds": {"cpu": {"elementwise": {"flops_per_s": 1e9, "bytes_per_s": 1e10, "overhead_s": 1e-6}}},
        "link": {"latency_s": 1e-5, "bytes_per_s": 1e9},
    }
).encode()


def _document(read: Callable[[Document], object], name: str) -> Read:
    return lambda data: read(Document(name, data))


def _text(read: Callable[[str], object]) -> Read:
    return lambda data: read(data.decode("utf-8", "replace"))


def _by_file(path: Path, read: Callable[[Path], object]) -> Read:
    """Return a reader of bytes from one that wants a file."""

    def reader(data: bytes) -> object:
        path.write_bytes(data)
        return read(path)

    return reader


def _settings(path: Path) -> Read:
    known = {"plan": frozenset({"policy", "time_limit", "seed", "output"}), "replay": frozenset({"procs", "output"})}

    def read(data: bytes) -> object:
        path.write_bytes(data)
        os.environ["STRETTO_CONFIG"] = str(path)
        try:
            return read_settings(known)
        finally:
            del os.environ["STRETTO_CONFIG"]

    return read


def _checkpoint(folder: Path) -> bytes:
    checkpoint.save(folder / "seed.npz", {"x": np.arange(5.0), "y": np.eye(2, dtype=np.int32)}, {"step": 1})
    return (folder / "seed.npz").read_bytes()


def _archive(data: bytes) -> bytes:
    """Return a catalog as it is published: one list for each provider in a packed archive."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as archive:
        member = tarfile.TarInfo("v8/aws/vms.csv")
        member.size = len(data)
        archive.addfile(member, io.BytesIO(data))
    return packed.getvalue()


def _instance(spot: bytes) -> str:
    return spot.decode().splitlines()[1].split(",")[3]
