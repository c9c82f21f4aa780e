"""Stretto inside Dask: ``with stretto.dask.schedule(client, policy="heft"): x.compute()``.

``schedule`` runs a client's graphs by a plan, ``dispatch`` by late decisions, ``capture`` records what a cluster ran as
a graph that every planner reads, and ``farm`` spreads evaluations and training seeds over workers.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from stretto.errors import MissingExtra

_LAZY = {
    "Capture": "stretto.engines.dask.capture",
    "LateDispatcher": "stretto.engines.driver.dispatch",
    "capture": "stretto.engines.dask.capture",
    "dispatch": "stretto.engines.dask.schedule",
    "farm": "stretto.engines.dask.farm",
    "schedule": "stretto.engines.dask.schedule",
}

__all__ = ["Capture", "LateDispatcher", "capture", "dispatch", "farm", "schedule"]

if TYPE_CHECKING:
    from stretto.engines.dask.capture import Capture, capture
    from stretto.engines.dask.farm import farm
    from stretto.engines.dask.schedule import dispatch, schedule
    from stretto.engines.driver.dispatch import LateDispatcher


def __getattr__(name: str) -> Any:
    if name not in _LAZY:
        raise AttributeError(f"module 'stretto.dask' has no attribute {name!r}")
    try:
        import distributed  # noqa: F401
    except ImportError:
        raise MissingExtra("distributed", "dask", f"stretto.dask.{name}") from None
    return getattr(importlib.import_module(_LAZY[name]), name)
