"""How Kubernetes writes quantities and times, and what the containers of a pod ask for."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import NamedTuple

from stretto.core.request import ANY_GPU

JsonObject = Mapping[str, object]
_QUANTITY = re.compile(r"([0-9]{1,18}(?:\.[0-9]{1,9})?)(?:[eE]([0-9]{1,2}))?([A-Za-z]{0,2})")
_SCALE = {"": 1.0, "m": 1e-3, "u": 1e-6, "n": 1e-9} | {
    unit: 1000.0**power for power, unit in enumerate(("k", "M", "G", "T", "P", "E"), start=1)
}
_SCALE |= {f"{unit}i": 1024.0**power for power, unit in enumerate(("K", "M", "G", "T", "P", "E"), start=1)}
#: Resources that are GPUs, whoever makes them.
_GPU = re.compile(r"[a-z0-9.-]+/(?:gpu|mig-[a-z0-9.]+|gpu\.shared)")


class Needs(NamedTuple):
    """What one pod asks for."""

    cpus: float = 0.0
    memory_bytes: float = 0.0
    gpus: int = 0


def quantity(value: object) -> float:
    """Return a number of ``500m``, ``4Gi``, ``2`` or ``1e3``."""
    text = str(value).strip() if isinstance(value, (str, int, float)) and not isinstance(value, bool) else ""
    found = _QUANTITY.fullmatch(text)
    if found is None or found[3] not in _SCALE:
        raise ValueError(f"{str(value)[:60]!r} is not a quantity")
    return float(found[1]) * 10.0 ** int(found[2] or 0) * _SCALE[found[3]]


def moment(value: object) -> float:
    """Return Unix seconds of ``2024-05-01T10:00:00Z``; NaN for none."""
    if not isinstance(value, str) or not value:
        return math.nan
    try:
        when = datetime.fromisoformat(value)
        return (when if when.tzinfo is not None else when.replace(tzinfo=UTC)).timestamp()
    except (ValueError, OverflowError):
        raise ValueError(f"{value[:60]!r} is not a time") from None


def at(value: object, *keys: str) -> object:
    """Return a value inside objects; None where it is missing."""
    for key in keys:
        value = value.get(key) if isinstance(value, Mapping) else None
    return value


def items(value: object) -> list[JsonObject]:
    """Return the objects of a list; other things are passed over."""
    return [item for item in value if isinstance(item, Mapping)] if isinstance(value, list) else []


def pod_needs(spec: object) -> Needs:
    """Return what a pod needs at once: its containers together, or a larger init container."""
    running = [_container(container) for container in items(at(spec, "containers"))]
    before = [_container(container) for container in items(at(spec, "initContainers"))]
    total = Needs(*(sum(part) for part in zip(*running, strict=True))) if running else Needs()
    for one in before:
        total = Needs(max(total.cpus, one.cpus), max(total.memory_bytes, one.memory_bytes), max(total.gpus, one.gpus))
    return total


def _container(container: JsonObject) -> Needs:
    """Return requests; where there are none, the limits, as Kubernetes itself does."""
    requests, limits = at(container, "resources", "requests"), at(container, "resources", "limits")
    wanted = {**(limits if isinstance(limits, Mapping) else {}), **(requests if isinstance(requests, Mapping) else {})}
    gpus = sum(quantity(value) for key, value in wanted.items() if _GPU.fullmatch(str(key)))
    return Needs(quantity(wanted.get("cpu", 0)), quantity(wanted.get("memory", 0)), math.ceil(gpus))


def gpu_type(selector: object) -> str:
    """Return the type of GPU that a node selector asks for, or any."""
    labels = selector if isinstance(selector, Mapping) else {}
    named = (str(value) for key, value in labels.items() if str(key).endswith(("gpu.product", "accelerator")))
    return next(named, ANY_GPU)


def features(selector: object) -> frozenset[str]:
    """Return the labels that a node must have, other than the type of its GPUs."""
    labels = selector if isinstance(selector, Mapping) else {}
    return frozenset(
        f"{key}={value}" for key, value in labels.items() if not str(key).endswith(("gpu.product", "accelerator"))
    )
