"""What each component of the catalog says of itself: name, one line, parameters.

The command line and the tables of the documentation are both made from this.
"""

from __future__ import annotations

import dataclasses
import inspect
from typing import Any

from stretto import catalog, registry

#: What can be listed: the table of the catalog, and what one of its entries is called.
_TABLES = {
    "policies": ("PLANNERS", "policy"),
    "formats": ("FORMATS", "format"),
    "workloads": ("WORKLOADS", "workload"),
    "strategies": ("STRATEGIES", "strategy"),
    "backfills": ("BACKFILLS", "backfill"),
    "estimates": ("ESTIMATES", "estimate model"),
    "pool-rules": ("POOL_RULES", "pool rule"),
    "traces": ("TRACES", "trace format"),
    "sites": ("SITES", "site format"),
    "dispatchers": ("DISPATCHERS", "dispatcher"),
    "run-dispatchers": ("RUN_DISPATCHERS", "run dispatcher"),
}


def names_of(what: str) -> list[str]:
    """Return the names of a table in the order of the catalog."""
    return list(_table(what))


def _table(what: str) -> dict[str, str]:
    """Return a table of the catalog and of plugins; selectors stand behind the strategies that they choose from."""
    name, singular = _TABLES[what]
    table: dict[str, str] = getattr(catalog, name)
    return registry.known(singular, table | catalog.SELECTORS | catalog.RECORDS if what == "strategies" else table)


def describe(what: str) -> list[dict[str, Any]]:
    """Return what each component of a table says of itself."""
    if what == "policies":
        return describe_policies()
    if what == "workloads":
        return describe_workloads()
    return describe_formats(what) if what in ("formats", "traces", "sites") else describe_rules(what)


def first_sentence(component: Any) -> str:
    """Return the first line of a docstring, without its full stop."""
    return (inspect.getdoc(component) or "").partition("\n")[0].removesuffix(".")


def describe_policies() -> list[dict[str, Any]]:
    """Return name, summary and parameters with defaults of every policy."""
    entries = []
    for name, target in _table("policies").items():
        component = registry.resolve(target)
        entries.append({"name": name, "summary": first_sentence(component), "params": _field_defaults(component)})
    return entries


def describe_rules(what: str) -> list[dict[str, Any]]:
    """Return name and summary of every strategy, backfilling, estimate or choice of pool."""
    return [{"name": name, "summary": registry.resolve(target).summary} for name, target in _table(what).items()]


def describe_formats(what: str = "formats") -> list[dict[str, Any]]:
    """Return name, summary, endings and access of every format of graphs, traces or sites."""
    entries = []
    for name, target in _table(what).items():
        component = registry.resolve(target)
        entries.append(
            {
                "name": name,
                "summary": component.summary.removesuffix("."),
                "endings": list(component.endings),
                "access": "read, write" if hasattr(component, "write") else "read",
            }
        )
    return entries


def describe_workloads() -> list[dict[str, Any]]:
    """Return name, summary and parameters with defaults of every generator."""
    entries = []
    for name, target in _table("workloads").items():
        function = registry.resolve(target)
        params = {
            key: None if parameter.default is parameter.empty else parameter.default
            for key, parameter in inspect.signature(function).parameters.items()
        }
        entries.append({"name": name, "summary": first_sentence(function), "params": params})
    return entries


def _field_defaults(component: Any) -> dict[str, Any]:
    defaults: dict[str, Any] = {}
    for field in dataclasses.fields(component):
        if not field.init:
            continue
        if field.default is not dataclasses.MISSING:
            defaults[field.name] = field.default
        elif field.default_factory is not dataclasses.MISSING:
            defaults[field.name] = field.default_factory()
        else:
            defaults[field.name] = None
    return defaults
