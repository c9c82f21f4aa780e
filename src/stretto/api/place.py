"""``stretto.place``: place the operations of a JAX function, or the tasks of a graph, on devices."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from stretto.api.inputs import ClusterLike, graph_of
from stretto.api.python_model import call_builder, python_function
from stretto.catalog import EMITTERS
from stretto.core.graph import TaskGraph
from stretto.core.plan import Discipline
from stretto.core.planner import Budget, Progress
from stretto.core.problem import Problem
from stretto.core.workload import Workload
from stretto.errors import InvalidInput
from stretto.graphs.conditions import Contention
from stretto.graphs.evaluate import Setting, evaluate
from stretto.registry import lookup
from stretto.reports.placement import Placement, chosen_policy, cluster_of, place_function


def place(
    fn: Callable[..., Any],
    *example_args: Any,
    devices: int | ClusterLike | Sequence[Any],
    policy: str | None = None,
    time_limit_s: float | None = None,
    seed: int = 0,
    discipline: Discipline | None = None,
    contention: Contention = "none",
    params: Mapping[str, Any] | None = None,
    num_threads: int = 2,
    on_progress: Callable[[Progress], None] | None = None,
    example_kwargs: Mapping[str, Any] | None = None,
) -> Placement:
    """Place the operations of a JAX function on devices.

    Parameters
    ----------
    fn, example_args, example_kwargs
        The function and arguments to trace it with: arrays, or ``jax.ShapeDtypeStruct``; nothing is computed.
    devices
        A number of GPUs (joined by 16 GB/s), a cluster, its shorthand such as ``gpu:4@50GB/s``, or ``jax.devices()``
        (assumed: typical CPUs and GPUs, joined by 16 GB/s).
    policy
        A policy; by default ``doppler``, or ``heft`` where that is not in the catalog.

    Examples
    --------
    >>> import jax, jax.numpy as jnp, stretto
    >>> def both(x, a, b):
    ...     return jnp.tanh(x @ a) + jnp.tanh(x @ b)
    >>> shape = jax.ShapeDtypeStruct((4096, 4096), "float32")
    >>> placement = stretto.place(both, shape, shape, shape, devices=2, policy="heft")
    >>> placement.speedup_over_single > 1.2
    True
    """
    budget = Budget(seed, time_limit_s, num_threads, on_progress)
    setting = Setting(discipline, contention)
    return place_function(fn, example_args, example_kwargs or {}, devices, policy, params, budget, setting)


def place_model(
    model: str | Path,
    *,
    devices: int | ClusterLike,
    dims: Mapping[str, int] | None = None,
    allow_code: bool = False,
    policy: str | None = None,
    time_limit_s: float | None = None,
    seed: int = 0,
    contention: Contention = "none",
    params: Mapping[str, Any] | None = None,
    on_progress: Callable[[Progress], None] | None = None,
) -> Placement:
    """Place what a file describes: a graph of any known format, or a function of a Python file.

    Parameters
    ----------
    model
        A graph as :func:`stretto.load` takes it, or ``FILE.py:FUNCTION``: a function without parameters that returns
        the model and its example arguments, as in ``return apply, (weights, batch)``.
    allow_code
        Execute the Python file; without it such a source is refused.
    """
    options: dict[str, Any] = {"policy": policy, "time_limit_s": time_limit_s, "seed": seed, "params": params}
    options |= {"contention": contention, "on_progress": on_progress}
    function = python_function(str(model))
    if function is not None:
        if dims:
            raise InvalidInput("only ONNX models have open dimensions", field=f"--dim {next(iter(dims))}")
        fn, args = call_builder(*function, allow_code=allow_code)
        return place(fn, *args, devices=devices, **options)
    if allow_code:
        raise InvalidInput(f"{model} is read, not executed", field="--allow-code")
    return place_graph(graph_of(model, dims), devices=devices, **options)


def place_graph(
    graph: TaskGraph | Workload,
    *,
    devices: int | ClusterLike,
    policy: str | None = None,
    time_limit_s: float | None = None,
    seed: int = 0,
    contention: Contention = "none",
    params: Mapping[str, Any] | None = None,
    on_progress: Callable[[Progress], None] | None = None,
) -> Placement:
    """Place the tasks of a graph on devices."""
    if not isinstance(graph, TaskGraph):
        raise InvalidInput("holds several graphs: name one of them, as FILE#MEMBER", field="model")
    budget = Budget(seed, time_limit_s, 2, on_progress)
    problem = Problem.of(graph, cluster_of(devices))
    return Placement(
        evaluate(problem, chosen_policy(policy), params=params, budget=budget, setting=Setting(None, contention))
    )


def emit_placement(placement: Placement, emit: str) -> bytes:
    """Return a placement as a program of a framework, or as a document: a name of the catalog's ``EMITTERS``."""
    made: bytes = lookup("emitter", emit, EMITTERS)(placement)
    return made
