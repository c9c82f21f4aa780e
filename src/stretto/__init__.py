"""Stretto: a scheduler that learns what runs where, and in which order.

The verbs are ``load``, ``plan``, ``simulate``, ``bound`` and ``compare``; the nouns
``TaskGraph``, ``GraphBuilder``, ``Workload`` and ``Cluster``. Everything is imported on first use.
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
    "plan": "stretto.api",
    "problem": "stretto.api",
    "save": "stretto.api",
    "simulate": "stretto.api",
    "Cluster": "stretto.domain.cluster",
    "Device": "stretto.domain.cluster",
    "GraphBuilder": "stretto.domain.builder",
    "Job": "stretto.domain.workload",
    "Plan": "stretto.domain.plan",
    "Problem": "stretto.domain.problem",
    "StrettoError": "stretto.errors",
    "TaskGraph": "stretto.domain.graph",
    "Workload": "stretto.domain.workload",
}
_MODULES = ("workloads",)

__all__ = ["__version__", "workloads", *_LAZY]

if TYPE_CHECKING:
    from stretto import workloads
    from stretto.api import bound, compare, load, load_cluster, plan, problem, save, simulate
    from stretto.domain.builder import GraphBuilder
    from stretto.domain.cluster import Cluster, Device
    from stretto.domain.graph import TaskGraph
    from stretto.domain.plan import Plan
    from stretto.domain.problem import Problem
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
