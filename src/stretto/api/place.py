"""``stretto.place``: place the operations of a JAX function, a PyTorch module or an ONNX model on devices."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from stretto.api.inputs import ClusterLike
from stretto.core.plan import Discipline
from stretto.core.planner import Budget, Progress
from stretto.errors import InvalidInput
from stretto.graphs.conditions import Contention
from stretto.graphs.evaluate import Setting
from stretto.reports.onnx_placement import is_onnx_model, place_onnx, read_onnx_model
from stretto.reports.placement import Placement, chosen_policy, cluster_of, place_function
from stretto.reports.placement_memory import MemoryLike, with_memory
from stretto.reports.torch_placement import is_torch_module, place_torch


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
    max_memory: MemoryLike | None = None,
    dims: Mapping[str, int] | None = None,
) -> Placement:
    """Place the operations of a JAX function, a PyTorch module or an ONNX model on devices.

    Parameters
    ----------
    fn, example_args, example_kwargs
        The function and arguments to trace it with: arrays, or ``jax.ShapeDtypeStruct``; nothing is computed. Or a
        ``torch.nn.Module`` and example tensors. Or an ONNX model: a file, or a ``ModelProto``.
    devices
        A number of GPUs (joined by 16 GB/s), a cluster, its shorthand such as ``gpu:4@50GB/s``, or ``jax.devices()``
        (assumed: typical CPUs and GPUs, joined by 16 GB/s).
    policy
        A policy; by default ``doppler``, or ``heft`` where that is not in the catalog.
    max_memory
        Memory of the devices: one size for all (``"16GB"``), one for each in their order, or by name or number.
    dims
        Sizes of dimensions that an ONNX model leaves open, such as ``{"batch": 8}``.

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
    kwargs = example_kwargs or {}
    if is_onnx_model(fn):
        if example_args or kwargs:
            raise InvalidInput("an ONNX model takes none: sizes of open dimensions are dims=", field="example_args")
        model = read_onnx_model(fn)
        chosen, cluster = chosen_policy(policy, params), with_memory(cluster_of(devices), max_memory)
        return place_onnx(model, dims or {}, cluster, chosen, params, budget, setting)
    if dims:
        raise InvalidInput("has no effect here: only ONNX models have open dimensions", field="dims")
    if is_torch_module(fn):
        chosen, cluster = chosen_policy(policy, params), with_memory(cluster_of(devices), max_memory)
        return place_torch(fn, example_args, kwargs, cluster, chosen, params, budget, setting)
    if max_memory is not None:
        devices = with_memory(cluster_of(devices), max_memory)
    return place_function(fn, example_args, kwargs, devices, policy, params, budget, setting)
