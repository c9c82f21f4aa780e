"""Stretto: a scheduler that learns what runs where, and in which order.

The verbs are ``load``, ``plan``, ``place``, ``simulate``, ``bound``, ``compare`` and ``run``, and for queues
``load_trace`` and ``replay``; the nouns ``TaskGraph``, ``GraphBuilder``, ``Workload``, ``Cluster``, ``Trace`` and
``Pool``. Everything is imported on first use.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from stretto.moved import know_old_names

__version__ = "0.1.0"

_LAZY = {
    "bound": "stretto.api",
    "compare": "stretto.api",
    "load": "stretto.api",
    "load_cluster": "stretto.api",
    "load_trace": "stretto.api",
    "place": "stretto.api",
    "plan": "stretto.api",
    "problem": "stretto.api",
    "replay": "stretto.api",
    "run": "stretto.api",
    "save": "stretto.api",
    "simulate": "stretto.api",
    "Cluster": "stretto.core.cluster",
    "Device": "stretto.core.cluster",
    "GraphBuilder": "stretto.core.builder",
    "Job": "stretto.core.workload",
    "Plan": "stretto.core.plan",
    "Pool": "stretto.core.pool",
    "Problem": "stretto.core.problem",
    "StrettoError": "stretto.errors",
    "TaskGraph": "stretto.core.graph",
    "Trace": "stretto.core.trace",
    "Workload": "stretto.core.workload",
}
_MODULES = ("dask", "workloads")

__all__ = ["__version__", "dask", "workloads", *_LAZY]

if TYPE_CHECKING:
    from stretto import dask, workloads
    from stretto.api import (
        bound,
        compare,
        load,
        load_cluster,
        load_trace,
        place,
        plan,
        problem,
        replay,
        run,
        save,
        simulate,
    )
    from stretto.core.builder import GraphBuilder
    from stretto.core.cluster import Cluster, Device
    from stretto.core.graph import TaskGraph
    from stretto.core.plan import Plan
    from stretto.core.pool import Pool
    from stretto.core.problem import Problem
    from stretto.core.trace import Trace
    from stretto.core.workload import Job, Workload
    from stretto.errors import StrettoError


know_old_names()


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return importlib.import_module(f"stretto.{name}")
    if name not in _LAZY:
        raise AttributeError(f"module 'stretto' has no attribute {name!r}")
    value = getattr(importlib.import_module(_LAZY[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
