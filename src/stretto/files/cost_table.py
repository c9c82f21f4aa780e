"""The table that ``stretto calibrate`` writes: measured rooflines by kind of device and class of operation; links."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from stretto.core.cluster import Cluster
from stretto.errors import InvalidInput
from stretto.files.document import Document, read_document
from stretto.files.graphs.roofline import ClassRooflines, Roofline

_FORMAT, _VERSION = "stretto-costs", 1
_FIELDS = ("flops_per_s", "bytes_per_s", "overhead_s")


@dataclass(frozen=True)
class MeasuredCosts:
    """Measured costs.

    Attributes
    ----------
    kinds
        Rooflines of each kind of device, by class of operation.
    latency_s, bytes_per_s
        Of a copy from one device to another; None where there was one device only.
    busy_factor
        How many times as long operations take while all devices are busy: devices that share cores or a memory bus.
    machine
        What was measured, in words.
    """

    kinds: Mapping[str, ClassRooflines]
    latency_s: float | None = None
    bytes_per_s: float | None = None
    busy_factor: float = 1.0
    machine: str = ""

    def while_busy(self) -> Mapping[str, ClassRooflines]:
        """Return the rooflines of devices while all of them are busy."""
        return {
            kind: ClassRooflines({name: one.slower(self.busy_factor) for name, one in model.classes.items()})
            for kind, model in self.kinds.items()
        }

    def linked(self, cluster: Cluster) -> Cluster:
        """Return a cluster with the measured links, where all its kinds were measured."""
        if self.latency_s is None or self.bytes_per_s is None or not set(cluster.kinds) <= set(self.kinds):
            return cluster
        latency = np.full_like(cluster.latency_s, self.latency_s)
        np.fill_diagonal(latency, 0.0)
        return Cluster(
            cluster.devices, latency, np.full_like(cluster.bandwidth, self.bytes_per_s), cluster.name,
            rules=cluster.rules,
        )  # fmt: skip

    def to_bytes(self) -> bytes:
        """Return the table as the file that :func:`read_cost_table` reads."""
        kinds = {
            kind: {name: {key: getattr(one, key) for key in _FIELDS} for name, one in model.classes.items()}
            for kind, model in self.kinds.items()
        }
        link = None if self.latency_s is None else {"latency_s": self.latency_s, "bytes_per_s": self.bytes_per_s}
        body = {"format": _FORMAT, "version": _VERSION, "machine": self.machine, "busy_factor": self.busy_factor}
        body |= {"kinds": kinds, "link": link}
        return (json.dumps(body, indent=1, allow_nan=False) + "\n").encode()


def read_cost_table(path: str | Path) -> MeasuredCosts:
    """Read a table of measured costs."""
    document = read_document(str(path))
    root = document.json
    if not isinstance(root, dict) or root.get("format") != _FORMAT or root.get("version") != _VERSION:
        document.fail(f'expected "format": "{_FORMAT}", "version": {_VERSION}: what stretto calibrate writes')
    kinds, link = root.get("kinds"), root.get("link")
    if not isinstance(kinds, dict) or not kinds:
        document.fail("expected rooflines by kind of device", field="kinds")
    models = {str(kind): _classes(document, kind, rows) for kind, rows in kinds.items()}
    if link is not None and not isinstance(link, dict):
        document.fail("expected latency_s and bytes_per_s", field="link")
    busy = document.number(root.get("busy_factor", 1.0), "busy_factor")
    if not busy >= 1:
        document.fail(f"{busy} is less than 1", field="busy_factor")
    names = ("latency_s", "bytes_per_s")
    numbers = [None, None] if link is None else [document.number(link.get(key), f"link.{key}") for key in names]
    return MeasuredCosts(models, numbers[0], numbers[1], busy, str(root.get("machine", "")))


def _classes(document: Document, kind: str, rows: object) -> ClassRooflines:
    if not isinstance(rows, dict) or "elementwise" not in rows:
        document.fail("expected classes of operations, elementwise among them", field=f"kinds.{kind}")
    found = {}
    for name, row in rows.items():
        place = f"kinds.{kind}.{name}"
        if not isinstance(row, dict):
            document.fail(f"expected {', '.join(_FIELDS)}", field=place)
        try:
            rates = [document.number(row.get(key), f"{place}.{key}") for key in _FIELDS]
            found[str(name)] = Roofline(rates[0], rates[1], rates[2])
        except InvalidInput as error:
            raise error.at(document.name) from None
    return ClassRooflines(found)
