"""Rows of Intel's Performance Counter Monitor as readings: its columns under the names that beliefs know."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from stretto.errors import InvalidInput
from stretto.racks.telemetry.host import ISSUE_WIDTH, HostReading, summarised

#: Column, the source it stands for, and what one of its unit is (gigabytes per second for traffic).
PCM_COLUMNS: dict[str, tuple[str, float]] = {
    "IPC": ("perf/issue-slots", 1.0 / ISSUE_WIDTH),
    "READ": ("memory/read", 1e9),
    "WRITE": ("memory/write", 1e9),
    "LOCAL": ("memory/local", 1e9),
    "RMB": ("memory/remote", 1e9),
    "PCIeRdCur": ("root-complex/read", 1e9),
    "ItoM": ("root-complex/write", 1e9),
}


def pcm_reading(rows: Sequence[Mapping[str, float]], capacity: Mapping[str, float]) -> HostReading:
    """Return samples of PCM as a reading.

    Parameters
    ----------
    rows
        Values by column, one row per sample; columns that are not known are left out, and named in the notes.
    capacity
        Bytes per second by the kind of part (``memory``, ``root-complex``), of which traffic is a share.
    """
    if len(rows) < 2:
        raise InvalidInput(f"{len(rows)} samples have no spread; take 2 or more", field="rows")
    found = []
    for row in rows:
        sample = {}
        for column, value in row.items():
            if column in PCM_COLUMNS:
                name, unit = PCM_COLUMNS[column]
                kind = name.partition("/")[0]
                if kind != "perf" and kind not in capacity:
                    raise InvalidInput(f"the capacity of {kind} must be told for column {column}", field="capacity")
                sample[name] = value * unit / capacity.get(kind, 1.0)
        found.append(sample)
    others = sorted({column for row in rows for column in row} - set(PCM_COLUMNS))
    return summarised(found, tuple(f"{column}: not a column that is known" for column in others))
