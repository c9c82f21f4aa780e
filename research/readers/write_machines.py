"""Racks as machine files, for tests of the reader and for its fuzzer."""

from __future__ import annotations

import tomli_w

from stretto.core.machine import Machine, Part, Rack


def write_rack(rack: Rack) -> str:
    """Return a rack as text that :func:`stretto.files.clusters.machine_toml.read_rack` understands."""
    return tomli_w.dumps({"name": rack.name, "machine": [_machine_table(machine) for machine in rack.machines]})


def _machine_table(machine: Machine) -> dict[str, object]:
    links = [list(pair) for pair in machine.links]
    return {"name": machine.name, "links": links, "part": [_part_table(part) for part in machine.parts]}


def _part_table(part: Part) -> dict[str, object]:
    table: dict[str, object] = {"name": part.name, "kind": part.kind}
    if part.capacity != float("inf") and part.kind != "core":
        table["bandwidth"] = part.capacity
    if part.model:
        table["model"] = part.model
    return table
