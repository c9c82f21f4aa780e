"""The job graph of a Snakemake workflow, with durations where earlier runs tell them."""

from __future__ import annotations

import json
import os
import subprocess
from collections import Counter
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from stretto.core.builder import GraphBuilder
from stretto.core.graph import TaskGraph
from stretto.core.host.child_python import python_environment, python_words
from stretto.core.provenance import DURATIONS
from stretto.errors import InvalidInput, MissingExtra
from stretto.files.graphs.filegraph import FileGraph
from stretto.files.graphs.snakemake.dump import MARK, MAX_CORES
from stretto.files.graphs.snakemake.forecast import NOTHING, DurationForecast, DurationForecaster
from stretto.files.graphs.snakemake.records import (
    JobHistory,
    JobRecord,
    read_benchmark,
    read_history,
    total_bytes,
)

#: Where Snakemake looks for a workflow, in this order.
SNAKEFILES = ("Snakefile", "snakefile", "workflow/Snakefile", "workflow/snakefile")
#: What Snakemake counts by itself, or in another unit.
_COUNTED = ("_nodes", "_job_count", "mem_mib", "disk_mib", "runtime", "mem_mb", "disk_mb", "gpu")
_MEGA = 1e6

Json = dict[str, Any]


def find_snakefile(source: str) -> Path | None:
    """Return the Snakefile of a directory, or the file itself where it is one; None where there is none."""
    path = Path(source)
    if os.path.isdir(path):
        return next((path / name for name in SNAKEFILES if os.path.isfile(path / name)), None)
    is_named = path.name.lower() == "snakefile" or path.suffix == ".smk"
    return path if is_named and os.path.isfile(path) else None


def load_snakemake(source: str) -> TaskGraph:
    """Read the graph of all jobs of a workflow, up to date or not.

    Snakemake builds the graph in a process of its own; the code of the Snakefile runs there, jobs do not. Durations
    come from benchmark files, ``.snakemake/metadata`` and Stretto's log of jobs.
    """
    snakefile = find_snakefile(source)
    if snakefile is None:
        raise InvalidInput(f"has no Snakefile ({', '.join(SNAKEFILES)})", source=source)
    if find_spec("snakemake") is None:
        raise MissingExtra("snakemake", "snakemake", "reading a Snakefile")
    directory = _directory(Path(source), snakefile)
    rows = _job_rows(snakefile, directory)
    if not rows:
        raise InvalidInput("has no jobs: its first rule requests nothing", source=str(snakefile))
    return graph_of_rows(rows, directory, read_history(directory))


def _directory(source: Path, snakefile: Path) -> Path:
    """Return where the workflow runs: the given directory, or the one that ``Snakefile`` or ``workflow/`` is in."""
    if source.is_dir():
        return source.resolve()
    parent = snakefile.resolve().parent
    return parent.parent if parent.name == "workflow" else parent


def _job_rows(snakefile: Path, directory: Path) -> list[Json]:
    command = python_words("-m", "stretto.files.graphs.snakemake.dump", str(snakefile.resolve()), str(directory))
    done = subprocess.run(command, capture_output=True, text=True, env=python_environment())
    for line in done.stdout.splitlines():
        if line.startswith(MARK):
            rows: list[Json] = json.loads(line.removeprefix(MARK))
            return rows
    reason = "\n".join(done.stderr.strip().splitlines()[-8:])
    raise InvalidInput(f"Snakemake cannot build its graph of jobs:\n{reason}", source=str(snakefile))


def graph_of_rows(rows: list[Json], directory: Path, history: JobHistory) -> TaskGraph:
    """Make the graph of jobs that :mod:`dump` printed."""
    forecaster = DurationForecaster(history.records)
    for row in rows:
        record = _benchmark(row, directory)
        if record is not None:
            forecaster.add(record)
    build = GraphBuilder(directory.name or "workflow")
    files, taken, bases = FileGraph(build), Counter[str](), Counter[str]()
    for number, row in enumerate(rows):
        forecast = _forecast(row, forecaster, directory)
        bases[forecast.basis] += 1
        _add_job(build, row, _name(row, taken), forecast)
        for parent in row["parents"]:
            files.depends(number, int(parent))
    _add_files(files, rows, directory)
    files.finish()
    build.meta.update(format="snakemake", forecasts=dict(bases))
    build.meta[DURATIONS] = _basis(bases, len(rows))
    return build.graph()


def _output(row: Json) -> str:
    return min(row["output"]) if row["output"] else f"{row['rule']}:{sorted(row['wildcards'].items())}"


def _name(row: Json, taken: Counter[str]) -> str:
    wildcards = ", ".join(f"{key}={value}" for key, value in row["wildcards"].items())
    name = f"{row['rule']} ({wildcards})" if wildcards else str(row["rule"])
    taken[name] += 1
    return name if taken[name] == 1 else f"{name} #{taken[name]}"


def _benchmark(row: Json, directory: Path) -> JobRecord | None:
    path = directory / row["benchmark"] if row["benchmark"] else None
    found = read_benchmark(path) if path is not None else None
    if path is None or found is None:
        return None
    ended_s = path.stat().st_mtime
    return JobRecord(row["rule"], found[0], _output(row), row["wildcards"], None, None, found[1], ended_s)


def _forecast(row: Json, forecaster: DurationForecaster, directory: Path) -> DurationForecast:
    if row["is_empty"]:
        return NOTHING
    size = total_bytes(directory / name for name in row["input"])
    return forecaster.forecast(row["rule"], _output(row), row["wildcards"], size)


def _add_job(build: GraphBuilder, row: Json, name: str, forecast: DurationForecast) -> None:
    needs = {key: float(value) for key, value in row["needs"].items()}
    cores = needs.pop("_cores", 0.0)
    build.task(
        name,
        forecast.mean_s,
        cores=0.0 if cores >= MAX_CORES else cores,  # threads: workflow.cores
        memory_bytes=needs.get("mem_mb", 0.0) * _MEGA,
        gpus=needs.get("gpu", 0.0),
        needs={key: value for key, value in needs.items() if key not in _COUNTED and value > 0},
        category=str(row["rule"]),
    )


def _add_files(files: FileGraph, rows: list[Json], directory: Path) -> None:
    for number, row in enumerate(rows):
        for name in row["output"]:
            files.writes(number, name)
            files.size(name, total_bytes([directory / name]) or 0.0)
        for name in row["input"]:
            files.reads(number, name)


def _basis(bases: Counter[str], num_jobs: int) -> str:
    """Say where the durations come from; one that is assumed is enough to say so."""
    if not bases["assumed"]:
        return "estimated (from earlier runs of Snakemake)"
    which = f"{bases['assumed']} of {num_jobs} jobs" if bases["assumed"] < num_jobs else "every job"
    return f"assumed ({which}: no job of the rule was run before)"
