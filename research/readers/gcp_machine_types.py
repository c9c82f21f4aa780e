"""Google Cloud's tables of machine types and of regions with accelerators."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from stretto.files.document import read_document
from stretto.files.prices.csv_rows import read_csv
from stretto.files.prices.offer import GIB


@dataclass(frozen=True, slots=True)
class MachineType:
    """What a type of machine holds.

    Attributes
    ----------
    is_shared
        Whether its processors are shared with other machines.
    is_deprecated
        Whether the provider is about to give it up, or has.
    """

    num_vcpus: int
    memory_bytes: float
    is_shared: bool
    is_deprecated: bool


def read_machine_types(path: str | Path) -> dict[str, MachineType]:
    """Read the table of machine types: ``NAME;CPUS;SHARED_CPU;MEMORY_GB;DEPRECATED;ZONE``."""
    document = read_document(path)
    columns, rows = read_csv(document, delimiter=";")
    name, cpus, memory = columns.find("NAME"), columns.find("CPUS"), columns.find("MEMORY_GB")
    shared, deprecated = columns.find("SHARED_CPU"), columns.find("DEPRECATED")
    return {
        row[name]: MachineType(
            int(document.number(row[cpus], "CPUS", line=line, minimum=1)),
            document.number(row[memory], "MEMORY_GB", line=line) * GIB,
            row[shared] == "True",
            bool(row[deprecated]),
        )
        for line, row in rows
    }


def read_accelerator_regions(path: str | Path) -> dict[str, tuple[str, ...]]:
    """Read where each kind of accelerator is: ``NAME;ZONE``, a row for each region."""
    columns, rows = read_csv(read_document(path), delimiter=";")
    name, zone = columns.find("NAME"), columns.find("ZONE")
    regions: dict[str, tuple[str, ...]] = {}
    for _, row in rows:
        regions[row[name]] = (*regions.get(row[name], ()), row[zone])
    return regions
