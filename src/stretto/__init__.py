"""Stretto: a scheduler that learns what runs where, and in which order.

The verbs are those of :mod:`stretto.api`, one per command: ``plan``, ``place``, ``compare``, ``bound``, ``simulate``,
``replay``, ``when``, ``explain``, ``train``, ``run``, ``steer``, ``rack``, ``report``, ``show``, ``gantt`` and
``convert``; ``load``, ``load_cluster``, ``load_trace``, ``load_pools`` and ``load_site`` read files. The nouns are
``TaskGraph``, ``GraphBuilder``, ``Workload``, ``Cluster``, ``Trace``, ``Pool`` and ``Site``. Everything is imported on
first use.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from stretto.api import NAMES
from stretto.moved import know_old_names

__version__ = "0.1.0"

_LAZY = dict.fromkeys(NAMES, "stretto.api") | {
    "Cluster": "stretto.core.cluster",
    "Device": "stretto.core.cluster",
    "GraphBuilder": "stretto.core.builder",
    "Job": "stretto.core.workload",
    "Plan": "stretto.core.plan",
    "Pool": "stretto.core.pool",
    "Problem": "stretto.core.problem",
    "Site": "stretto.core.site",
    "StrettoError": "stretto.errors",
    "TaskGraph": "stretto.core.graph",
    "Trace": "stretto.core.trace",
    "Workload": "stretto.core.workload",
}
_MODULES = ("dask", "workloads")

__all__ = ["__version__", "dask", "workloads", *_LAZY]

if TYPE_CHECKING:
    from stretto import dask as dask
    from stretto import workloads as workloads
    from stretto.api import *  # noqa: F403
    from stretto.core.builder import GraphBuilder as GraphBuilder
    from stretto.core.cluster import Cluster as Cluster
    from stretto.core.cluster import Device as Device
    from stretto.core.graph import TaskGraph as TaskGraph
    from stretto.core.plan import Plan as Plan
    from stretto.core.pool import Pool as Pool
    from stretto.core.problem import Problem as Problem
    from stretto.core.site import Site as Site
    from stretto.core.trace import Trace as Trace
    from stretto.core.workload import Job as Job
    from stretto.core.workload import Workload as Workload
    from stretto.errors import StrettoError as StrettoError


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
