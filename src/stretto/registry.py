"""Lazy look-up of components: a name becomes ``module:attr`` and is imported on first use.

The catalog is asked first. What it does not hold may come from another installed distribution,
which announces its components as entry points: ``docs/howto/plugins.md``.
"""

from __future__ import annotations

import dataclasses
import functools
import importlib
import sys
from collections.abc import Iterable, Mapping
from typing import Any

from stretto.errors import InvalidInput, StrettoError, UnknownName

#: The entry-point group in which other distributions announce each kind of component.
GROUPS = {
    "policy": "stretto.policies",
    "format": "stretto.formats",
    "workload": "stretto.workloads",
    "strategy": "stretto.strategies",
    "trace format": "stretto.traces",
    "trace generator": "stretto.trace_generators",
    "algorithm": "stretto.trainers",
    "dispatcher": "stretto.dispatchers",
    "engine": "stretto.engines",
}


#: Names of earlier versions that moved to the repository's ``research`` folder, with what to run there.
IN_RESEARCH: dict[str, str] = {
    "joint-doppler": "python -m research.doppler.ablations joint GRAPH",
    "stepwise-doppler": "python -m research.doppler.ablations per-step GRAPH",
    "placeto-style": "python -m research.doppler.ablations improver GRAPH",
    "gdp-style": "python -m research.doppler.ablations one-shot GRAPH",
}


def plugins(what: str) -> dict[str, str]:
    """Return the components of one kind that other distributions bring, as ``module:attr`` by name."""
    group = GROUPS.get(what)
    return dict(_entry_points(group, tuple(sys.path))) if group is not None else {}


@functools.cache
def _entry_points(group: str, path: tuple[str, ...]) -> tuple[tuple[str, str], ...]:
    """Read the metadata of what is installed, once for each search path."""
    from importlib.metadata import entry_points

    return tuple(sorted({point.name: point.value for point in entry_points(group=group)}.items()))


def known(what: str, table: Mapping[str, str]) -> dict[str, str]:
    """Return a table of the catalog with what plugins add to it; they cannot replace what is built in."""
    return dict(table) | {name: target for name, target in plugins(what).items() if name not in table}


def resolve(target: str) -> Any:
    """Import the object that a ``module:attr`` string names."""
    module, _, attr = target.partition(":")
    return getattr(importlib.import_module(module), attr)


def unknown(what: str, name: str, known_names: Iterable[str]) -> StrettoError:
    """Return the error for a name that no table holds: where it moved to, or the nearest known names."""
    command = IN_RESEARCH.get(name)
    if command is None:
        return UnknownName(what, name, known_names)
    return InvalidInput(
        f"{name!r} moved out of the package; in a checkout of the repository run  {command}", field=what
    )


def lookup(what: str, name: str, table: Mapping[str, str]) -> Any:
    """Import the component called ``name``, or raise with the nearest known names."""
    if name in table:
        return resolve(table[name])
    others = plugins(what)
    if name not in others:
        raise unknown(what, name, [*table, *others])
    try:
        return resolve(others[name])
    except Exception as error:  # somebody else's module may fail in any way
        raise InvalidInput(
            f"the plugin {others[name]!r} cannot be loaded: {type(error).__name__}: {error}", field=f"{what} {name}"
        ) from error


def construct(what: str, name: str, table: Mapping[str, str], params: Mapping[str, object]) -> Any:
    """Build the component called ``name`` with its dataclass parameters checked by name."""
    component = lookup(what, name, table)
    fields = {field.name for field in dataclasses.fields(component) if field.init}
    for key in params:
        if key not in fields:
            raise UnknownName(f"parameter of {what} {name!r}:", key, fields)
    try:
        return component(**params)
    except (TypeError, ValueError) as error:
        raise InvalidInput(str(error), field=f"{what} {name}") from error
