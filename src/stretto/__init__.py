"""Stretto: a scheduler that learns what runs where, and in which order.

The verbs are ``load``, ``plan``, ``place``, ``simulate``, ``bound``, ``compare`` and ``run``, and for queues
``load_trace`` and ``replay``; the nouns ``TaskGraph``, ``GraphBuilder``, ``Workload``, ``Cluster``, ``Trace`` and
``Pool``. Everything is imported on first use.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

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
    "Cluster": "stretto.domain.cluster",
    "Device": "stretto.domain.cluster",
    "GraphBuilder": "stretto.domain.builder",
    "Job": "stretto.domain.workload",
    "Plan": "stretto.domain.plan",
    "Pool": "stretto.domain.pool",
    "Problem": "stretto.domain.problem",
    "StrettoError": "stretto.errors",
    "TaskGraph": "stretto.domain.graph",
    "Trace": "stretto.domain.trace",
    "Workload": "stretto.domain.workload",
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
    from stretto.domain.builder import GraphBuilder
    from stretto.domain.cluster import Cluster, Device
    from stretto.domain.graph import TaskGraph
    from stretto.domain.plan import Plan
    from stretto.domain.pool import Pool
    from stretto.domain.problem import Problem
    from stretto.domain.trace import Trace
    from stretto.domain.workload import Job, Workload
    from stretto.errors import StrettoError


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
