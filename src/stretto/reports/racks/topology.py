"""Machines as pages draw them: boxes inside boxes, from memory down to devices, as their parts hang together."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TypedDict

from stretto.racks.machine_work import RackModel
from stretto.reports.page.view_types import JsonObject

TOPOLOGY = "topology.json.gz"


class PartJson(TypedDict):
    """A part of a machine."""

    name: str
    kind: str
    model: str
    capacity: float | None


class MachineJson(TypedDict):
    """A machine: its parts, and which are linked."""

    name: str
    parts: list[PartJson]
    links: list[list[str]]


class Topology(TypedDict):
    """Machines, and the names of the resources and processors that samples refer to."""

    name: str
    machines: list[MachineJson]
    resources: list[str]
    processors: list[str]


#: Parts that join others of one level; they stand beside the boxes, not in one of them.
_JOINTS = ("socket-link",)


def rack_topology(model: RackModel) -> Topology:
    """Return a rack as JSON values."""
    machines: list[MachineJson] = [
        {
            "name": machine.name,
            "parts": [
                {
                    "name": part.name,
                    "kind": part.kind,
                    "model": part.model,
                    "capacity": part.capacity if math.isfinite(part.capacity) else None,
                }
                for part in machine.parts
            ],
            "links": [list(link) for link in machine.links],
        }
        for machine in model.rack.machines
    ]
    return {
        "name": model.rack.name,
        "machines": machines,
        "resources": list(model.resources),
        "processors": list(model.processors),
    }


def processor_kinds(topology: Topology) -> dict[str, tuple[str, str]]:
    """Return the processors by name, with their kinds and machines."""
    commanded = set(topology["processors"])
    return {
        f"{machine['name']}/{part['name']}": (str(part["kind"]), str(machine["name"]))
        for machine in topology["machines"]
        for part in machine["parts"]
        if f"{machine['name']}/{part['name']}" in commanded
    }


def drawn_machines(topology: Topology) -> list[JsonObject]:
    """Return the machines as trees of boxes, with the places of their parts among resources and processors."""
    resource = {name: place for place, name in enumerate(topology["resources"])}
    processor = {name: place for place, name in enumerate(topology["processors"])}
    found: list[JsonObject] = []
    for machine in topology["machines"]:
        parts: list[JsonObject] = [
            {
                **part,
                "resource": resource.get(f"{machine['name']}/{part['name']}"),
                "processor": processor.get(f"{machine['name']}/{part['name']}"),
            }
            for part in machine["parts"]
        ]
        boxes, joints = _boxes(parts, machine["links"])
        found.append({"name": machine["name"], "boxes": boxes, "joints": joints})
    return found


def _boxes(parts: Sequence[JsonObject], links: Sequence[Sequence[str]]) -> tuple[list[JsonObject], list[JsonObject]]:
    """Hang every part below the memory that it reaches first; return the memories, and what joins them."""
    near: dict[str, list[str]] = {part["name"]: [] for part in parts}
    for a, b in links:
        near[a].append(b)
        near[b].append(a)
    by_name = {part["name"]: part for part in parts}
    boxes = {name: {**part, "inside": []} for name, part in by_name.items()}
    roots = [part["name"] for part in parts if part["kind"] == "memory"] or [part["name"] for part in parts[:1]]
    seen, queue = set(roots), list(roots)
    while queue:
        name = queue.pop(0)
        for other in near[name]:
            if other not in seen and by_name[other]["kind"] not in _JOINTS:
                seen.add(other)
                boxes[name]["inside"].append(boxes[other])
                queue.append(other)
    joints = [{**part, "ends": near[part["name"]]} for part in parts if part["name"] not in seen]
    return [boxes[name] for name in roots], joints
