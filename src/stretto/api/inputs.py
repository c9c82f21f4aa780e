"""What the verbs accept: graphs, clusters, traces and machines, as objects or as the words that name them.

``workload:NAME?key=value`` is a built-in graph, ``kernels:NAME?key=value`` work with real kernels, ``trace:NAME?...`` a
generated queue, ``commands:FILE`` a WfFormat file with its commands; everything else is a file, a directory with a
Snakefile, or the shorthand of a cluster or of pools.
"""

from __future__ import annotations

import inspect
import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from stretto import catalog
from stretto.core.cluster import Cluster
from stretto.core.graph import TaskGraph
from stretto.core.nodes.recorded import RECORDED_CLUSTER, recorded_cluster
from stretto.core.pool import Pool
from stretto.core.problem import Problem
from stretto.core.site import Site
from stretto.core.trace import Trace
from stretto.core.units import is_count
from stretto.core.workload import Workload
from stretto.errors import InvalidInput, StrettoError, UnknownName
from stretto.files.graphs.snakemake.workflow import find_snakefile, load_snakemake
from stretto.files.load import load as load_file
from stretto.files.load import load_cluster, save
from stretto.registry import lookup, resolve

GraphLike = TaskGraph | Workload | str | Path
ClusterLike = Cluster | str | Path
TraceLike = Trace | str | Path
#: A number of processors, pools, or their file or shorthand; or a site.
MachineLike = int | Sequence[Pool] | Site | str | Path

WORKLOAD_PREFIX, KERNELS_PREFIX, TRACE_PREFIX = "workload:", "kernels:", "trace:"
#: Before a WfFormat file: its recorded commands are meant, not its durations alone.
COMMANDS_PREFIX = "commands:"
PROJECT_CLUSTER = "shop:1"

__all__ = [
    "ClusterLike",
    "GraphLike",
    "MachineLike",
    "TraceLike",
    "load",
    "load_cluster",
    "load_pools",
    "load_site",
    "load_trace",
    "problem",
    "save",
]


def parse_params(pairs: Sequence[str], *, field: str = "--param") -> dict[str, object]:
    """Return ``key=value`` pairs as a dictionary, values read as JSON literals or strings."""
    params: dict[str, object] = {}
    for pair in pairs:
        key, equals, value = pair.partition("=")
        if not (key and equals):
            raise InvalidInput(f"{pair!r} is not KEY=VALUE", field=field)
        params[key.strip().replace("-", "_")] = _literal(value)
    return params


def _literal(text: str) -> object:
    try:
        value: object = json.loads(text)
    except (ValueError, RecursionError):  # also of numbers with thousands of digits, and of brackets without end
        return text
    return value


def split_query(source: str, prefix: str) -> tuple[str, dict[str, object]]:
    """Split ``prefix:NAME?key=value`` into the name and the parameters."""
    name, _, query = source.removeprefix(prefix).partition("?")
    return name, parse_params([pair for pair in query.split("&") if pair], field=prefix + name)


def load(
    source: str | Path, *, format: str | None = None, dims: Mapping[str, int] | None = None
) -> TaskGraph | Workload:
    """Read a graph, or a workload of several, from a file of any known format, or make a built-in one.

    Parameters
    ----------
    source
        A file, ``FILE#MEMBER`` for one graph of several, a workflow of commands, a directory with a Snakefile, or
        ``workload:NAME?key=value``.
    dims
        Sizes of dimensions that a model (ONNX) leaves open, such as ``{"batch": 8}``.

    Examples
    --------
    >>> import stretto
    >>> stretto.load("workload:cholesky?num_tiles=3").num_tasks
    10
    """
    text = str(source).removeprefix(COMMANDS_PREFIX)
    if text.startswith((WORKLOAD_PREFIX, KERNELS_PREFIX)):
        if format is not None:
            raise InvalidInput(f"cannot be combined with {text}: a built-in graph is not read", field="--from")
        if text.startswith(KERNELS_PREFIX):
            from stretto.api.run import kernel_work

            return kernel_work(text).graph
        return make_graph(*split_query(text, WORKLOAD_PREFIX))
    if format is None and text.lower().endswith(".toml"):
        from stretto.engines.workflow_file import is_workflow, load_workflow

        if is_workflow(text):
            return load_workflow(text).graph
    if format is None and find_snakefile(text) is not None:
        return load_snakemake(text)
    return load_file(text, format=format, dims=dims)


def make_graph(name: str, params: Mapping[str, object]) -> TaskGraph:
    """Make the graph that ``stretto list workloads`` calls so."""
    from stretto.graphs.workloads.generate import generate

    return generate(name, **params)


def graph_of(graph: GraphLike, dims: Mapping[str, int] | None = None) -> TaskGraph | Workload:
    """Return a graph as it is, or read it."""
    return graph if isinstance(graph, (TaskGraph, Workload)) else load(graph, dims=dims)


def cluster_of(cluster: ClusterLike) -> Cluster:
    """Return a cluster as it is, or read it; the file of a plan on pools holds its nodes."""
    from stretto.api.plan_file import kept_cluster

    if isinstance(cluster, Cluster):
        return cluster
    return kept_cluster(str(cluster)) or load_cluster(cluster)


def problem(
    graph: GraphLike | Problem, cluster: ClusterLike | None = None, *, dims: Mapping[str, int] | None = None
) -> Problem:
    """Compile a graph for a cluster; both may be given as files or, for clusters, in shorthand.

    Without a cluster there are four CPUs, or for a project (RCPSP) the resources that it brings; ``recorded`` means the
    machines that the file of a recorded run names. ``dims`` are those of :func:`load`.

    Examples
    --------
    >>> import stretto
    >>> stretto.problem("workload:fft?num_points=8", "cpu:2,gpu:1").num_devices
    3
    """
    if isinstance(graph, Problem):
        return graph
    work = graph_of(graph, dims)
    if cluster is None:
        cluster = PROJECT_CLUSTER if _is_project(work) else "cpu:4"
    if cluster == RECORDED_CLUSTER:
        if isinstance(work, Workload):
            raise InvalidInput("a workload of several graphs has no machines of its own", field="cluster")
        return Problem.of(work, recorded_cluster(work))
    return Problem.of(work, cluster_of(cluster))


def named_problem(graph: GraphLike, cluster: ClusterLike | None) -> Problem:
    """Compile a graph for a cluster; only projects can do without a cluster."""
    work = graph_of(graph)
    if cluster is None and not _is_project(work):
        raise InvalidInput("is missing: name the machines, for example -c cpu:8x1.0,gpu:2x5.0", field="--cluster")
    return problem(work, cluster)


def _is_project(work: TaskGraph | Workload) -> bool:
    return isinstance(work, TaskGraph) and work.resources is not None


def load_trace(
    source: str | Path, *, format: str | None = None, strict: bool = False, dependencies: bool = False
) -> Trace:
    """Read a recorded queue of jobs, or make one; a workflow becomes jobs that wait for each other.

    Parameters
    ----------
    source
        A file (gzip is unpacked), ``trace:NAME?key=value``, or a graph.
    format
        A name of the catalog's ``TRACES``; by default the content decides.
    strict
        Stop at the first invalid row. By default such rows are left out and listed in the trace's ``meta``:
        ``skipped`` (line and reason, the first thousand) and ``num_skipped``.
    dependencies
        Let jobs wait for the "preceding job" that an SWF file names.

    Examples
    --------
    >>> import stretto
    >>> stretto.load_trace("trace:lublin?num_jobs=100&num_procs=64").num_jobs
    100
    """
    text = str(source)
    if text.startswith(TRACE_PREFIX):
        return _generated_trace(text)
    if text.startswith(WORKLOAD_PREFIX):
        return _trace_of_graph(text)
    from stretto.files.traces.load import load_trace as load_trace_file

    try:
        return load_trace_file(text, format=format, strict=strict, dependencies=dependencies)
    except InvalidInput:
        if _matches(text, catalog.FORMATS) and not _matches(text, catalog.TRACES):
            return _trace_of_graph(text)
        raise


def trace_of(trace: TraceLike, *, strict: bool = False) -> Trace:
    """Return a trace as it is, or read it."""
    return trace if isinstance(trace, Trace) else load_trace(trace, strict=strict)


def _generated_trace(source: str) -> Trace:
    name, params = split_query(source, TRACE_PREFIX)
    if isinstance(params.get("trace"), str):
        params["trace"] = load_trace(str(params["trace"]))
    return make_trace(name, params, field=TRACE_PREFIX + name)


def make_trace(name: str, params: Mapping[str, object], *, field: str) -> Trace:
    """Make a trace with a generator; by default of 1,000 jobs. ``field`` is named where a parameter is wrong."""
    make = lookup("trace generator", name, catalog.TRACE_GENERATORS)
    known = inspect.signature(make).parameters
    for param in params:
        if param not in known:
            raise UnknownName(f"parameter of trace {name!r}:", param, known)
    try:
        made: Trace = make(**{"num_jobs": 1000, "seed": 0, **params})
    except (TypeError, ValueError, OverflowError, AttributeError) as error:  # a wrong name, or a wrong kind
        raise InvalidInput(str(error), field=field) from None
    return made


def _trace_of_graph(source: str) -> Trace:
    from stretto.files.traces.workflow import trace_of_graph

    graph = load(source)
    if not isinstance(graph, TaskGraph):
        raise InvalidInput("a workload of several graphs is not a trace", source=source)
    return trace_of_graph(graph)


def is_trace(source: object) -> bool:
    """Say whether something is a recorded or generated queue rather than a graph; never raises."""
    if isinstance(source, Trace):
        return True
    if not isinstance(source, (str, Path)):
        return False
    text = str(source)
    return text.startswith(TRACE_PREFIX) or (_matches(text, catalog.TRACES) and not _matches(text, catalog.FORMATS))


def _matches(source: str, table: Mapping[str, str]) -> bool:
    """Say whether the content of a file looks like some format of a table."""
    from stretto.files.document import read_document
    from stretto.files.traces.load import MAX_TRACE_BYTES

    if not os.path.isfile(source):
        return False
    try:
        document = read_document(source, max_bytes=MAX_TRACE_BYTES)
        return any(resolve(target).matches(document) for target in table.values())
    except StrettoError:
        return False


def load_pools(source: str | Path) -> tuple[Pool, ...]:
    """Read pools of machines from a TOML file or from shorthand.

    Examples
    --------
    >>> import stretto
    >>> [pool.num_procs for pool in stretto.load_pools("own:128*16,cloud:0-64*8@0.40~90s")]
    [2048, 512]
    """
    from stretto.files.clusters.pool_toml import parse_pools, read_pools
    from stretto.files.document import read_document
    from stretto.files.near_file import file_hint

    text = str(source)
    if os.path.isfile(text) or text.lower().endswith((".toml", ".json")):
        return read_pools(read_document(text))
    try:
        return parse_pools(text)
    except InvalidInput as error:
        raise InvalidInput(error.message + ("" if ":" in text else file_hint(text)), field=error.field) from None


def load_site(source: str | Path, *, format: str | None = None) -> Site:
    """Read a site: nodes, partitions and reservations, from a site file (TOML) or from text that Slurm writes.

    Parameters
    ----------
    source
        A site file, the text of ``slurm.conf``, or that of ``scontrol show node``, ``show partition`` and
        ``show reservation`` one after the other; the content decides.
    format
        A name of the catalog's ``SITES``.

    Examples
    --------
    >>> import stretto, tempfile, pathlib
    >>> file = pathlib.Path(tempfile.mkdtemp()) / "site.toml"
    >>> _ = file.write_text('[[node]]\\nname = "c[01-16]"\\ncpus = 64\\n')
    >>> stretto.load_site(file).num_cpus
    1024
    """
    from stretto.files.clusters.load_site import load_site as load_site_file

    return load_site_file(source, format=format)


def is_site(source: object) -> bool:
    """Say whether something is a site, or a file of one; never raises."""
    if isinstance(source, Site):
        return True
    return isinstance(source, (str, Path)) and _matches(str(source), catalog.SITES)


def machine_of(trace: Trace, machine: MachineLike | None, *, how: str = "machine=N") -> int | tuple[Pool, ...] | Site:
    """Return the machine that is meant, by default the one that the trace was recorded on.

    Dated reservations of a site are counted from the trace's first submission.

    Parameters
    ----------
    how
        How a caller can name the machine, for the error where the trace does not.
    """
    if machine is None:
        return trace.recorded_procs(how)
    if isinstance(machine, Site) or is_site(machine):
        site = machine if isinstance(machine, Site) else load_site(str(machine))
        return site.since(_first_submission(trace))
    if isinstance(machine, (str, Path)):
        return load_pools(machine)
    if isinstance(machine, int):
        if machine < 1:
            raise InvalidInput(f"{machine} processors; a machine needs at least one", field="procs")
        return machine
    return tuple(machine)


def _first_submission(trace: Trace) -> float | None:
    """Return the Unix time of the first submission; None where the trace has no clock."""
    if trace.origin_unix_s is None or not trace.num_jobs:
        return None
    return trace.origin_unix_s + float(trace.submit_s[0])


def cut_window(trace: Trace, window: tuple[int, int] | None) -> Trace:
    """Return some jobs of a trace: the first, counted from 0, and how many."""
    if window is None:
        return trace
    first, count = window
    if first < 0 or count < 1:
        raise InvalidInput(f"{first}:{count} is not START:COUNT, such as 1000:5000", field="window")
    if first >= trace.num_jobs:
        raise InvalidInput(f"job {first} is not one of {trace.num_jobs:,} jobs", field="window")
    return trace.window(first, count)


def with_dims(source: str, dims: Sequence[str] | None) -> str:
    """Return the source with the sizes of open dimensions, as ``FILE?batch=8``, so that it lasts in plan files."""
    for pair in dims or []:
        name, equals, size = pair.partition("=")
        if not (name and equals and is_count(size)):
            raise InvalidInput(f"{pair!r} is not NAME=SIZE, such as batch=8", field="--dim")
    if not dims:
        return source
    from stretto.engines.workflow_file import is_workflow

    has_none = source.startswith((WORKLOAD_PREFIX, KERNELS_PREFIX)) or is_workflow(source)
    if has_none or is_site(source) or is_trace(source):
        raise InvalidInput(f"has no effect on {source}: only ONNX models have open dimensions", field="--dim")
    return source + ("&" if split_path(source)[1].rpartition("?")[1] else "?") + "&".join(dims)


def split_path(source: str) -> tuple[str, str]:
    """Split a source into its path and what follows it: ``#member`` and ``?dim=size``."""
    at = next((place for place, sign in enumerate(source) if sign in "#?" and os.path.exists(source[:place])), None)
    return (source, "") if at is None or os.path.exists(source) else (source[:at], source[at:])


def lasting(source: str) -> str:
    """Return the source such that it still means the same in another directory."""
    if source.startswith(COMMANDS_PREFIX):
        return COMMANDS_PREFIX + lasting(source.removeprefix(COMMANDS_PREFIX))
    path, rest = split_path(source)
    if source.startswith(WORKLOAD_PREFIX) or not os.path.exists(path):
        return source
    return os.path.abspath(path) + rest
