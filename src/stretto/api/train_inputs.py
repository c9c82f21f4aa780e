"""What ``stretto.train`` learns on: a problem, a queue on its machine, or a rack, read from what the caller names."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from stretto.api.inputs import (
    KERNELS_PREFIX,
    ClusterLike,
    GraphLike,
    TraceLike,
    cluster_of,
    machine_of,
    named_problem,
    trace_of,
)
from stretto.core.problem import Problem
from stretto.core.units import format_count
from stretto.errors import InvalidInput
from stretto.learning.trainer import Executor

if TYPE_CHECKING:
    from stretto.racks.symphony.cases import Case


class Subject(NamedTuple):
    """What is learned on: itself, its name and size in words, and the settings that the run log keeps of it."""

    value: object
    name: str
    size: str
    settings: dict[str, object]
    notes: tuple[str, ...] = ()
    machine: str = ""
    executor: Executor | None = None


def rack_named(source: str | Path) -> Case:
    """Return a rack with its jobs: a built-in one by name, or the machines of a TOML file."""
    from stretto.files.clusters.machine_toml import read_rack
    from stretto.files.document import read_document
    from stretto.racks.symphony.cases import case, case_of

    if str(source).lower().endswith(".toml"):
        return case_of(read_rack(read_document(source)))
    return case(str(source))


def queue_subject(source: TraceLike, procs: int | None) -> Subject:
    """Read a log, and leave out the jobs that do not fit its machine."""
    from stretto.queues.mars.run import SHARE
    from stretto.queues.setup import notes_of

    log = trace_of(source)
    num_procs = machine_of(log, procs, how="--procs N")
    assert isinstance(num_procs, int)
    trace, _ = log.fitting(num_procs)
    recorded = log.meta.get("max_procs_from", "the trace")
    machine = f"{num_procs:,} processors, as {'--procs' if procs is not None else recorded} says"
    size = format_count(int(SHARE * trace.num_jobs), "job")
    notes = notes_of(log, num_procs, log.fits(num_procs))
    if log.meta.get("num_skipped"):
        line, reason = log.meta["skipped"][0]
        many = format_count(int(log.meta["num_skipped"]), "invalid row")
        notes = (f"{many} of {source} left out, the first at line {line}: {reason}", *notes)
    return Subject((trace, num_procs), trace.name, size, {"procs": num_procs}, notes, machine)


def graph_subject(source: GraphLike | Problem, cluster: ClusterLike | None, engine: str | None) -> Subject:
    """Compile a graph for its cluster, with measured times where an engine runs the plans."""
    executor = None
    if isinstance(source, Problem):
        problem = source
    elif engine is None:
        problem = named_problem(source, cluster)
    else:
        problem, executor = _measured(str(source), cluster, engine)
    settings: dict[str, object] = {"cluster": problem.cluster.name}
    size = format_count(problem.num_tasks, "task")
    return Subject(problem, problem.graph.name, size, settings, executor=executor)


def _measured(source: str, cluster: ClusterLike | None, engine: str) -> tuple[Problem, Executor]:
    """Return the problem of some work with real kernels, calibrated, and who runs its plans.

    The simulator of the earlier stages is given the times that the engine has: guessed ones would teach nonsense.
    """
    from stretto.api.run import kernel_work
    from stretto.engines.calibrate import calibrate
    from stretto.engines.engine import EngineExecutor, make_engine

    if not source.startswith(KERNELS_PREFIX):
        raise InvalidInput(
            f"{source!r} computes nothing: an engine runs {KERNELS_PREFIX}NAME?key=value", field="--engine"
        )
    if cluster is None:
        raise InvalidInput("is missing: name the machines, for example -c cpu:2", field="--cluster")
    runner, machines, work = make_engine(engine), cluster_of(cluster), kernel_work(source)
    found = calibrate(runner, work, machines)
    problem = Problem.of(found.graph(work.graph), found.cluster(machines))
    return problem, EngineExecutor(runner, work, machines)
