"""Requests of jobs as JSON: what has its default is left out."""

from __future__ import annotations

from dataclasses import fields

from stretto.core.request import JobRequest, ResourceRequest, components_of

_DEFAULT = ResourceRequest()
_NAMES = tuple(field.name for field in fields(ResourceRequest))
_TEXTS = ("partitions", "features")
_NUMBERS = ("memory_bytes_per_cpu", "memory_bytes_per_node")
_COUNTS = ("num_tasks", "cpus_per_task", "min_nodes", "max_nodes", "tasks_per_node")
_TYPES = ("gpus_per_task", "gpus_per_node")


def request_to_json(request: JobRequest) -> list[dict[str, object]]:
    """Return the components of a request."""
    return [_component(part) for part in components_of(request)]


def _component(part: ResourceRequest) -> dict[str, object]:
    values: dict[str, object] = {}
    for name in _NAMES:
        value = getattr(part, name)
        if value != getattr(_DEFAULT, name):
            values[name] = sorted(value) if isinstance(value, frozenset) else value
    return values


def request_of_json(value: object) -> JobRequest:
    """Return a request, or raise ValueError where it is none."""
    if not isinstance(value, list) or not value:
        raise ValueError(f"{str(value)[:60]!r} is not a request")
    parts = tuple(_component_of(item) for item in value)
    return parts if len(parts) > 1 else parts[0]


def _component_of(value: object) -> ResourceRequest:
    if not isinstance(value, dict) or not set(value) <= set(_NAMES):
        raise ValueError(f"{str(value)[:60]!r} is not part of a request")
    request = ResourceRequest(**{name: _checked(name, item) for name, item in value.items()})  # type: ignore[arg-type]
    return request


def _checked(name: str, value: object) -> object:
    """Return a value of the right kind for its field."""
    if name in _TEXTS and isinstance(value, list) and all(isinstance(item, str) for item in value):
        return tuple(value) if name == "partitions" else frozenset(value)
    if name in _NUMBERS and isinstance(value, (int, float)) and not isinstance(value, bool):
        return float(value)
    if name in _COUNTS and isinstance(value, int) and not isinstance(value, bool):
        return value
    if name == "is_exclusive" and isinstance(value, bool):
        return value
    if name in _TYPES and isinstance(value, dict) and all(type(count) is int for count in value.values()):
        return value
    raise ValueError(f"{str(value)[:60]!r} cannot be {name} of a request")
