"""``stretto.place``: place a JAX function, a PyTorch module, an ONNX model or the tasks of a graph on devices."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypedDict, Unpack

from stretto.api.inputs import graph_of
from stretto.catalog import EMITTERS
from stretto.core.cluster import Cluster
from stretto.core.graph import TaskGraph
from stretto.core.plan import Discipline
from stretto.core.planner import Budget, Progress
from stretto.core.problem import Problem
from stretto.core.provenance import DURATIONS, ROOFLINE, duration_basis
from stretto.core.workload import Workload
from stretto.engines.python_model import call_builder, python_function
from stretto.errors import InvalidInput
from stretto.files.cost_table import MeasuredCosts, read_cost_table
from stretto.files.graphs.jax_trace import JaxOptions
from stretto.files.graphs.roofline import costs_of
from stretto.files.load import load as load_file
from stretto.files.load import write_atomically
from stretto.graphs.conditions import Contention
from stretto.graphs.evaluate import Setting, evaluate, planner_named
from stretto.registry import lookup
from stretto.reports.onnx_placement import is_onnx_model, place_onnx, read_onnx_model
from stretto.reports.place_devices import Devices, DevicesLike, devices_of
from stretto.reports.place_function import chosen_policy, place_function
from stretto.reports.place_measured import measured
from stretto.reports.placement import Placement
from stretto.reports.placement_memory import MemoryLike
from stretto.reports.torch_placement import is_torch_module, place_torch


class ModelArguments(TypedDict, total=False):
    """What may be said of a model and its costs.

    Attributes
    ----------
    weights
        Numbers of positional arguments and names of keyword arguments that are weights: they stay on the devices that
        read them. By default arrays of at least 1 MiB are assumed to be.
    optimizer_state
        Bytes of optimizer state per byte of a weight, which stay beside it: 2 for Adam in the type of the weights.
        A PyTorch module is placed for training when it is given, else for calls only.
    group
        Whether cheap equations join the operation that makes their operand, as XLA would fuse them (True).
    unroll
        Rounds up to which a ``scan`` is unrolled (64); a longer one is one operation.
    memory
        Of the devices: one size for all (``"16GB"``), one for each in their order, or by name or number; by default
        what the devices state.
    costs
        A table of measured costs that ``stretto calibrate`` wrote; by default profiles and typical figures.
    measure
        Time the operations and several placements on the devices of JAX, plan again with the measured costs, and
        return the placement that took the least time; ``Placement.measured`` holds the runs.
    example_kwargs
        Keyword arguments to trace the function or module with.
    dims
        Sizes of dimensions that an ONNX model leaves open, such as ``{"batch": 8}``.
    """

    weights: int | str | Sequence[int | str] | None
    optimizer_state: float
    group: bool
    unroll: int
    memory: MemoryLike | None
    costs: str | Path | None
    measure: bool
    example_kwargs: Mapping[str, Any] | None
    dims: Mapping[str, int] | None


#: What can be said of each kind of model.
_OF_ONNX = ("memory", "dims")
_OF_TORCH = ("memory", "optimizer_state", "example_kwargs")
_OF_JAX = ("weights", "optimizer_state", "group", "unroll", "memory", "costs", "measure", "example_kwargs")


def place(
    fn: Any,
    *example_args: Any,
    devices: DevicesLike,
    policy: str | None = None,
    time_limit_s: float | None = None,
    seed: int = 0,
    discipline: Discipline | None = None,
    contention: Contention = "none",
    params: Mapping[str, Any] | None = None,
    num_threads: int = 2,
    on_progress: Callable[[Progress], None] | None = None,
    **model: Unpack[ModelArguments],
) -> Placement:
    """Place the operations of a JAX function, a PyTorch module or an ONNX model on devices.

    Parameters
    ----------
    fn, example_args
        The function and arguments to trace it with: arrays, or ``jax.ShapeDtypeStruct``; nothing is computed. Or a
        ``torch.nn.Module`` and example tensors. Or an ONNX model: a file, or a ``ModelProto``.
    devices
        A number of GPUs (joined by 16 GB/s), a cluster, its shorthand such as ``gpu:4@50GB/s`` or ``a100:2,l4:2``,
        names of devices such as ``["a100", "l4"]``, or ``jax.devices()`` (by their profiles where there are some).
    policy
        A policy; by default ``doppler``, or ``heft`` where that is not in the catalog.
    model
        :class:`ModelArguments`: which arguments are weights, grouping, loops, memory, measured costs, dimensions.

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
    where = devices_of(devices, memory=model.get("memory"))
    if is_onnx_model(fn):
        _check_arguments(model, _OF_ONNX, "an ONNX model")
        if example_args:
            raise InvalidInput(
                "an ONNX model takes no example arguments; set sizes of open dimensions with dims=",
                field="example_args",
            )
        named = read_onnx_model(fn)
        chosen = _known_policy(policy, params)
        return place_onnx(named, model.get("dims") or {}, where, chosen, params, budget, setting)
    if is_torch_module(fn):
        _check_arguments(model, _OF_TORCH, "a PyTorch module")
        kwargs = model.get("example_kwargs") or {}
        chosen = _known_policy(policy, params)
        state = model.get("optimizer_state")
        return place_torch(fn, example_args, kwargs, where, chosen, params, budget, setting, state)
    _check_arguments(model, _OF_JAX, "a function of JAX")
    return _place_jax(fn, example_args, where, policy, params, budget, setting, model)


def _check_arguments(given: ModelArguments, known: Sequence[str], what: str) -> None:
    """Refuse what says nothing of this kind of model."""
    wrong = next((name for name, value in given.items() if name not in known and value is not None), None)
    if wrong is not None:
        raise InvalidInput(f"does not apply to {what}, which takes {', '.join(known)}", field=wrong)


def _known_policy(policy: str | None, params: Mapping[str, Any] | None) -> str:
    """Return the policy; a misspelt name is found before a model is read."""
    chosen = chosen_policy(policy)
    planner_named(chosen, params)
    return chosen


def _place_jax(
    fn: Callable[..., Any],
    example_args: Sequence[Any],
    where: Devices,
    policy: str | None,
    params: Mapping[str, Any] | None,
    budget: Budget,
    setting: Setting,
    model: ModelArguments,
) -> Placement:
    costs, names = model.get("costs"), ("weights", "optimizer_state", "group", "unroll")
    table = read_cost_table(costs) if costs is not None else None
    options = JaxOptions(**{name: model[name] for name in names if name in model})  # type: ignore[literal-required]
    given = model.get("example_kwargs") or {}
    placement = place_function(fn, example_args, given, where, policy, params, budget, setting, options, table)
    return measured(placement, placement.real_devices(), budget) if model.get("measure") else placement


def place_model(
    model: str | Path,
    *,
    devices: DevicesLike,
    dims: Mapping[str, int] | None = None,
    allow_code: bool = False,
    memory: MemoryLike | None = None,
    costs: str | Path | None = None,
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
    memory, costs
        As for :func:`place`.

    Examples
    --------
    >>> import stretto
    >>> stretto.place_model("workload:ffnn", devices="gpu:4", policy="heft").speedup_over_single > 1
    True
    """
    options: dict[str, Any] = {"policy": policy, "time_limit_s": time_limit_s, "seed": seed, "params": params}
    options |= {"contention": contention, "on_progress": on_progress}
    function = python_function(str(model))
    if function is not None:
        if dims:
            raise InvalidInput("only ONNX models have open dimensions", field=f"--dim {next(iter(dims))}")
        fn, args = call_builder(*function, allow_code=allow_code)
        return place(fn, *args, devices=devices, memory=memory, costs=costs, **options)
    if allow_code:
        raise InvalidInput(f"{model} is read, not executed", field="--allow-code")
    if costs is not None:
        raise InvalidInput("a table of measured costs applies only to functions of JAX", field="--costs")
    if str(model).endswith((".onnx", ".onnx.gz")):
        return place(model, devices=devices, memory=memory, dims=dims, **options)
    where = devices_of(devices, memory=memory)
    return place_graph(_graph(model, where.cluster, dims), where.cluster, **options)


def _graph(model: str | Path, cluster: Cluster, dims: Mapping[str, int] | None) -> TaskGraph | Workload:
    """Read a graph; a model without durations gets them from the profiles of the devices."""
    graph = graph_of(model, dims)
    if not isinstance(graph, TaskGraph) or duration_basis(graph) != ROOFLINE or set(cluster.kinds) <= set(graph.kinds):
        return graph
    models, basis = costs_of(cluster)
    costed = load_file(model, dims=dims, rooflines=models)
    return costed.with_meta(**{DURATIONS: basis}) if isinstance(costed, TaskGraph) else costed


def place_graph(
    graph: TaskGraph | Workload,
    cluster: Cluster,
    *,
    policy: str | None = None,
    time_limit_s: float | None = None,
    seed: int = 0,
    contention: Contention = "none",
    params: Mapping[str, Any] | None = None,
    on_progress: Callable[[Progress], None] | None = None,
) -> Placement:
    """Place the tasks of a graph on the devices of a cluster."""
    if not isinstance(graph, TaskGraph):
        raise InvalidInput("holds several graphs: name one of them, as FILE#MEMBER", field="model")
    budget, setting = Budget(seed, time_limit_s, 2, on_progress), Setting(None, contention)
    problem = Problem.of(graph, cluster)
    return Placement(evaluate(problem, chosen_policy(policy), params=params, budget=budget, setting=setting))


def emit_placement(placement: Placement, emit: str, target: Path | None = None) -> bytes:
    """Return a placement as a program of a framework, or as a document, and write it where a file is named.

    Parameters
    ----------
    emit
        A name of the catalog's ``EMITTERS``.

    Examples
    --------
    >>> import json, stretto
    >>> placed = stretto.place_model("workload:ffnn", devices="gpu:2", policy="heft")
    >>> json.loads(stretto.emit_placement(placed, "json"))["num_devices"]
    2
    """
    made: bytes = lookup("emitter", emit, EMITTERS)(placement)
    if target is not None:
        write_atomically(target, made)
    return made


def calibrate(
    target: str | Path | None = None, *, devices: Sequence[Any] | None = None, repeats: int = 7
) -> MeasuredCosts:
    """Measure classes of operations and copies on devices of JAX; ``stretto.place(..., costs=FILE)`` plans with them.

    Parameters
    ----------
    target
        The file to write.
    devices
        By default ``jax.devices()``.
    repeats
        The shortest of so many runs counts.

    Examples
    --------
    >>> import stretto
    >>> table = stretto.calibrate(repeats=1)
    >>> all("elementwise" in model.classes for model in table.kinds.values())
    True
    """
    from stretto.engines.jax_calibrate import calibrate_jax

    table = calibrate_jax(devices, repeats=repeats)
    if target is not None:
        write_atomically(Path(target), table.to_bytes())
    return table
