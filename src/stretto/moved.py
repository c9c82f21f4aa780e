"""Old names of modules that documents named before the package was laid out in rooms; they go in the next version.

``from stretto.domain.plan import Plan`` still works, with a ``DeprecationWarning`` that names the new place.
"""

from __future__ import annotations

import importlib
import sys
import warnings
from collections.abc import Sequence
from importlib.machinery import ModuleSpec
from types import ModuleType

#: Old module to new one; None is a package that only held modules.
MOVED: dict[str, str | None] = {
    "stretto.domain": None,
    "stretto.domain.builder": "stretto.core.builder",
    "stretto.domain.cluster": "stretto.core.cluster",
    "stretto.domain.graph": "stretto.core.graph",
    "stretto.domain.plan": "stretto.core.plan",
    "stretto.domain.planner": "stretto.core.planner",
    "stretto.domain.pool": "stretto.core.pool",
    "stretto.domain.problem": "stretto.core.problem",
    "stretto.domain.queue_metrics": "stretto.queues.metrics",
    "stretto.domain.schedule": "stretto.core.schedule",
    "stretto.domain.trace": "stretto.core.trace",
    "stretto.domain.units": "stretto.core.units",
    "stretto.domain.workload": "stretto.core.workload",
    "stretto.engines.events": "stretto.engines.driver.events",
    "stretto.engines.online": "stretto.engines.driver.dispatch",
    "stretto.engines.safe_dispatch": "stretto.engines.driver.dispatch",
    "stretto.experiments": None,
    "stretto.experiments.evaluate": "stretto.graphs.evaluate",
    "stretto.experiments.gantt": "stretto.reports.gantt.draw",
    "stretto.experiments.queue_compare": "stretto.queues.compare",
    "stretto.experiments.queue_plots": "stretto.reports.plots.queues",
    "stretto.formats": None,
    "stretto.formats.dask_graph": "stretto.files.graphs.dask_graph",
    "stretto.formats.document": "stretto.files.document",
    "stretto.formats.jax_graph": "stretto.files.graphs.jax_graph",
    "stretto.formats.load": "stretto.files.load",
    "stretto.formats.traces": "stretto.files.traces",
    "stretto.formats.traces.reader": "stretto.files.traces.reader",
    "stretto.queues.plugins": "stretto.queues.strategies",
    "stretto.sim": None,
    "stretto.sim.device": "stretto.graphs.simulator",
    "stretto.sim.queue": "stretto.queues.replay",
    "stretto.training": None,
    "stretto.training.trainer": "stretto.learning.trainer",
    "stretto.workloads.lublin": "stretto.queues.workloads.lublin",
}


class MovedModules:
    """Finds modules by their old names, as a finder and a loader; their base classes take long to import."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname not in MOVED:
            return None
        is_package = any(name.startswith(f"{fullname}.") for name in MOVED)
        return ModuleSpec(fullname, self, is_package=is_package)  # type: ignore[arg-type]

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        return None

    def exec_module(self, module: ModuleType) -> None:
        new = MOVED[module.__name__]
        if new is None:
            return
        warnings.warn(f"{module.__name__} is now {new}", DeprecationWarning, stacklevel=2)
        found = importlib.import_module(new)
        vars(module).update({name: value for name, value in vars(found).items() if not name.startswith("__")})


def old_attribute(old: str, new: str) -> property:
    """Return a property that reads an attribute by the name that it had before, with a warning."""

    def read(owner: object) -> object:
        warnings.warn(f"{type(owner).__name__}.{old} is now {new}", DeprecationWarning, stacklevel=2)
        return getattr(owner, new)

    return property(read, doc=f"The old name of ``{new}``.")


def know_old_names() -> None:
    """Let old names be imported, once per process."""
    if not any(isinstance(finder, MovedModules) for finder in sys.meta_path):
        sys.meta_path.append(MovedModules())
