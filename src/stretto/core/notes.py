"""What a plan takes for granted, in sentences: one source for the terminal, JSON, pages and Python.

A note says what the planners do not model although the graph or the cluster states it (packing, memory), and which
numbers of the input are assumptions.
"""

from __future__ import annotations

import math

import numpy as np

from stretto.core.cluster import DEFAULT_BANDWIDTH
from stretto.core.graph import TaskGraph
from stretto.core.nodes.packing import DEFAULT_CORES, Packing
from stretto.core.nodes.recorded import RECORDED_CLUSTER
from stretto.core.problem import Problem
from stretto.core.provenance import (
    ARGUMENT_BYTES,
    GENERATED,
    IN_MEMORY,
    MEMORY_IGNORED,
    OBJECTS,
    are_objects_in_memory,
    duration_basis,
    open_dims,
)
from stretto.core.units import format_bytes, format_gap, is_zero_gap

_MOST_DIMS = 6
#: Bytes per second; less is more likely a forgotten unit than a link.
_SLOWEST_LINK = 1e3
_PACKING = "Packing is not modeled: a device runs one task at a time."
_ONE_AT_A_TIME = "a device runs one task at a time"
_PACKING_BESIDE = "Devices beside the nodes run one task at a time, whatever it needs."
_AS_ASSUMED = "tasks need what was assumed"
_AS_LONG = "tasks take the assumed time"
_RECORDED = (
    "The nodes are the machines that the file names. Assumed: recorded run times hold on each of them, and all "
    f"pairs are joined by {format_bytes(DEFAULT_BANDWIDTH)}/s."
)
_FITS = "memory suffices (not checked)"


def graph_notes(graph: TaskGraph) -> tuple[str, ...]:
    """Return what a reader had to assume about a graph."""
    notes = []
    basis = duration_basis(graph)
    if basis.startswith("assumed") and basis != GENERATED:
        notes.append(f"Durations are {basis}, not measured.")
    dims = open_dims(graph)
    if dims:
        shown = ", ".join(f"{name}={value}" for name, value in list(dims.items())[:_MOST_DIMS])
        more = f" and {len(dims) - _MOST_DIMS} more" if len(dims) > _MOST_DIMS else ""
        named = next((name for name in dims if not name.startswith("?")), None)
        hint = f" (set with --dim {named}=N)" if named is not None else ""
        notes.append(f"Open dimensions of the model were taken as {shown}{more}{hint}.")
    if MEMORY_IGNORED in graph.meta:
        notes.append(f"The memory of tasks was ignored: {graph.meta[MEMORY_IGNORED]}; 0 bytes are assumed.")
    counts = {name: graph.meta.get(f"num_unknown_{name}") for name in ("dims", "loops")}
    if not dims and counts["dims"]:
        notes.append(f"{counts['dims']} dimensions inside the model could not be inferred and were taken as 1.")
    if counts["loops"]:
        notes.append(f"{counts['loops']} loops do not state how often they run and were counted as one round.")
    return tuple(notes)


def problem_notes(problem: Problem) -> tuple[str, ...]:
    """Return the notes on a graph, and on what is not modeled when it is planned on a cluster."""
    graph = problem.graph
    notes = list(graph_notes(graph))
    if problem.cluster.name == RECORDED_CLUSTER:
        notes.append(_RECORDED)
    if problem.packing is not None:
        notes += _assumed_needs(problem.packing)
        if not all(problem.packing.packs) and _states_needs(graph):
            notes.append(_PACKING_BESIDE)
    elif _states_needs(graph):
        notes.append(_PACKING)
    notes += [note for note in (_memory_note(problem), _link_note(problem)) if note]
    return tuple(notes)


def verdict(problem: Problem, gap: float) -> str:
    """Say how good a plan is, and under which condition where one was not checked.

    Parameters
    ----------
    gap
        How far its makespan lies above a lower bound, as a fraction of it.
    """
    if math.isinf(gap):
        return "not judged: the lower bound is zero"
    guessed = assumptions(problem)
    if not is_zero_gap(gap):
        return f"at most {format_gap(gap)} above {'its lower bound' if guessed else 'optimal'}"
    conditions = [_ONE_AT_A_TIME] if problem.packing is None and _states_needs(problem.graph) else []
    if _unchecked(problem):
        conditions.append(_FITS)
    if guessed:
        return f"at its lower bound when {' and '.join([*guessed, *conditions])}"
    return f"optimal when {' and '.join(conditions)}" if conditions else "proven optimal"


def assumptions(problem: Problem) -> list[str]:
    """Return what must hold of the input that was guessed; where there is any, no plan is called optimal."""
    found = []
    basis = duration_basis(problem.graph)
    if basis.startswith("assumed") and basis != GENERATED:
        found.append(_AS_LONG)
    if problem.packing is not None and (problem.packing.assumed_cores or problem.packing.assumed_memory):
        found.append(_AS_ASSUMED)
    return found


def _assumed_needs(packing: Packing) -> list[str]:
    """Return what was assumed of tasks that do not state their needs."""
    n = len(packing.need)
    found = []
    if packing.assumed_cores:
        found.append(
            f"{packing.assumed_cores:,} of {n:,} tasks state no cores: {DEFAULT_CORES:g} core each is assumed."
        )
    if packing.assumed_memory:
        found.append(f"{packing.assumed_memory:,} of {n:,} tasks state no memory: 0 bytes each are assumed.")
    return found


def _states_needs(graph: TaskGraph) -> bool:
    """Say whether tasks state cores or memory; those of a project share its resources, and are packed."""
    states_memory = graph.memory_bytes is not None and graph.meta.get(OBJECTS) != IN_MEMORY  # a device has it to itself
    return graph.resources is None and (graph.cores is not None or states_memory)


def has_memory_limit(problem: Problem) -> bool:
    """Say whether a device of the cluster has finite memory."""
    return any(math.isfinite(device.memory_bytes) for device in problem.cluster.devices)


def _unchecked(problem: Problem) -> list[str]:
    """Return what the simulator leaves out when it keeps memory limits; it counts only what the graph states."""
    graph = problem.graph
    if not has_memory_limit(problem) or graph.resources is not None:
        return []
    found = [f"arguments ({format_bytes(size)})" for size in [_argument_bytes(graph)] if size > 0]
    if graph.transfer_unit == "seconds":
        found.append("data, whose size the graph does not state")
    says_nothing = graph.memory_bytes is None and graph.resident_bytes is None and graph.weights is None
    if says_nothing and not found and problem.packing is None:
        found.append("tasks: the graph does not state their needs")
    return found


def _link_note(problem: Problem) -> str:
    """Ask about links that nobody builds: a plain number in a cluster file is bytes per second."""
    graph, m = problem.graph, problem.num_devices
    if m == 1 or graph.transfer_unit != "bytes" or not np.any(graph.object_size):
        return ""
    beside_the_diagonal = problem.cluster.bandwidth.ravel()[1:].reshape(m - 1, m + 1)[:, :-1]  # a view: m may be large
    fastest = float(beside_the_diagonal.max())
    if fastest >= _SLOWEST_LINK:
        return ""
    return f"The fastest link carries {format_bytes(fastest)}/s: is a unit missing in the cluster?"


def _argument_bytes(graph: TaskGraph) -> float:
    found = graph.meta.get(ARGUMENT_BYTES, 0.0)
    return float(found) if isinstance(found, (int, float)) else 0.0


def _memory_note(problem: Problem) -> str:
    graph = problem.graph
    unchecked = _unchecked(problem)
    if unchecked:
        return f"Memory limits were not checked for {' and '.join(unchecked)}."
    if has_memory_limit(problem):
        if problem.packing is not None and not are_objects_in_memory(graph) and np.any(graph.object_size):
            return "Data between tasks is assumed to be files: it does not count against the memory of nodes."
        return ""
    weights = float(graph.resident_bytes.sum()) if graph.resident_bytes is not None else 0.0
    if graph.weights is not None:
        return "No device states its memory: weights and data fit wherever they are put."
    sizes = {"weights": weights, "arguments": _argument_bytes(graph)}
    held = [f"{name} ({format_bytes(size)})" for name, size in sizes.items() if size > 0]
    return f"Memory is not planned for: {' and '.join(held)} are taken to be everywhere." if held else ""
