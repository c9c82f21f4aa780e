"""``stretto.place``: place the operations of a JAX function on devices."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from stretto.api.inputs import ClusterLike
from stretto.core.plan import Discipline
from stretto.core.planner import Budget, Progress
from stretto.graphs.conditions import Contention
from stretto.graphs.evaluate import Setting
from stretto.reports.placement import Placement, place_function


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
