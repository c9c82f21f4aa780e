"""Every value of the catalog is an object that exists and has what its kind needs."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable
from typing import Any

import pytest

from stretto import catalog, registry
from stretto.errors import MissingExtra

TABLES = {name: table for name, table in vars(catalog).items() if name.isupper() and isinstance(table, dict)}
#: Libraries of extras; a component that needs one of them is left out where it is not installed.
EXTRAS = {"jax", "jaxlib", "optax", "dask", "distributed", "ray", "onnx", "pyarrow"}


def _has(*names: str) -> Callable[[Any], bool]:
    return lambda found: all(hasattr(found, name) for name in names)


def _is_planner(found: Any) -> bool:
    """A frozen dataclass whose fields all have defaults: it is built from its name alone."""
    fields = dataclasses.fields(found)
    defaults = all(
        field.default is not dataclasses.MISSING or field.default_factory is not dataclasses.MISSING for field in fields
    )
    return defaults and list(inspect.signature(found.plan).parameters)[:2] == ["self", "problem"]


def _takes(*names: str) -> Callable[[Any], bool]:
    return lambda found: callable(found) and list(inspect.signature(found).parameters)[: len(names)] == list(names)


NEEDS: dict[str, Callable[[Any], bool]] = {
    "PLANNERS": _is_planner,
    "TRAINERS": callable,
    "QUEUE_TRAINERS": callable,
    "RACK_TRAINERS": callable,
    "FORMATS": _has("summary", "endings", "matches", "read"),
    "WORKLOADS": lambda found: inspect.isfunction(found) and bool(inspect.getdoc(found)),
    "SITES": _has("summary", "endings", "matches", "read"),
    "TRACES": _has("summary", "endings", "matches", "read"),
    "TRACE_GENERATORS": inspect.isfunction,
    "STRATEGIES": _has("summary"),
    "SELECTORS": _has("summary"),
    "RECORDS": _has("summary"),
    "ONLINE_ORDERS": inspect.isclass,
    "SELECTOR_REPLAYS": _takes("trace"),
    "BACKFILLS": _has("summary"),
    "ESTIMATES": _has("summary"),
    "POOL_RULES": _has("summary"),
    "KERNELS": inspect.isfunction,
    "DISPATCHERS": _has("summary", "decider"),
    "RUN_DISPATCHERS": _has("summary", "watches_host"),
    "ENGINES": inspect.isclass,
    "EMITTERS": _takes("placement"),
}


@pytest.mark.parametrize(("table", "name"), [(table, name) for table, names in TABLES.items() for name in names])
def test_a_name_becomes_what_its_table_says(table: str, name: str) -> None:
    try:
        found = registry.resolve(TABLES[table][name])
    except MissingExtra as error:
        pytest.skip(str(error))
    except ImportError as error:
        if (error.name or "").partition(".")[0] not in EXTRAS:
            raise
        pytest.skip(f"needs {error.name}")
    assert NEEDS[table](found), f"{TABLES[table][name]} is no value for catalog.{table}"


def test_names_are_lower_case_and_targets_are_ours() -> None:
    for table in TABLES.values():
        for name, target in table.items():
            assert name == name.lower()
            assert target.startswith("stretto.")
            assert target.count(":") == 1
