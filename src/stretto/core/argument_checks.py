"""Checks of the arguments that generators share."""

from __future__ import annotations

import math
from collections.abc import Mapping
from numbers import Real

from stretto.errors import InvalidInput

#: A graph of this many tasks takes a few gigabytes while it is made; more would be a slip or an attack.
MAX_TASKS = 2_000_000
MAX_EDGES = 50_000_000
#: Jobs of a trace, and any other count.
MAX_JOBS = 20_000_000
MAX_COUNT = 1_000_000_000


def at_least(minimum: int, **counts: int) -> None:
    """Raise unless every count is a whole number not below the minimum."""
    for name, value in counts.items():
        if isinstance(value, bool) or not _is_finite(value) or int(value) != value or value < minimum:
            raise InvalidInput(f"{value!r} must be a whole number of at least {minimum}", field=name)
        if value > MAX_COUNT:
            raise InvalidInput(f"{value!r} must be at most {MAX_COUNT:,}", field=name)


def makes_tasks(count: float, **arguments: object) -> None:
    """Raise before anything is made when the arguments ask for more tasks than fit into memory."""
    _at_most(count, MAX_TASKS, "tasks", arguments)


def makes_edges(count: float, **arguments: object) -> None:
    """Raise before anything is made when the arguments ask for more edges than fit into memory."""
    _at_most(count, MAX_EDGES, "edges", arguments)


def makes_jobs(**arguments: int) -> None:
    """Raise before anything is made when the arguments ask for more jobs than fit into memory."""
    _at_most(max(arguments.values()), MAX_JOBS, "jobs", arguments)


def _at_most(count: float, limit: int, what: str, arguments: Mapping[str, object]) -> None:
    if not count <= limit:
        given = ", ".join(f"{name} = {value}" for name, value in arguments.items())
        raise InvalidInput(f"{given} would make {count:.3g} {what}; at most {limit:,}", field=next(iter(arguments)))


def tree_tasks(depth: int, arity: int) -> float:
    """Return how many tasks a full tree has, infinity where that number is absurd."""
    if arity == 1:
        return depth + 1.0
    return float("inf") if depth > 64 else (arity ** (depth + 1) - 1) / (arity - 1)


def positive(**values: float) -> None:
    """Raise unless every value is positive and finite."""
    for name, value in values.items():
        if not (_is_finite(value) and value > 0):
            raise InvalidInput(f"{value!r} must be positive and finite", field=name)


def not_negative(**values: float) -> None:
    """Raise unless every value is finite and not negative."""
    for name, value in values.items():
        if not (_is_finite(value) and value >= 0):
            raise InvalidInput(f"{value!r} must be finite and not negative", field=name)


def share(**values: float) -> None:
    """Raise unless every value lies between zero and one."""
    for name, value in values.items():
        if not (_is_finite(value) and 0 <= value <= 1):
            raise InvalidInput(f"{value!r} must lie between 0 and 1", field=name)


def _is_finite(value: object) -> bool:
    """Say whether it is a number that can be computed with; arguments come from addresses and requests, too."""
    try:
        return isinstance(value, Real) and math.isfinite(value)
    except OverflowError:  # an integer of hundreds of digits
        return False
