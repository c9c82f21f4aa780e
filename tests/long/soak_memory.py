"""How much memory a process holds while it is under load, and whether that grows."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

import numpy as np

_PAGE = os.sysconf("SC_PAGE_SIZE")
#: What happens before this share of the load counts as warming up.
_WARM = 0.2
NUM_SAMPLES = 100
#: Growth beyond this share after the warm-up is a leak.
MAX_GROWTH = 0.05


def resident_bytes(pid: int | None = None) -> int:
    """Return the memory that a process holds."""
    return int(Path(f"/proc/{pid or os.getpid()}/statm").read_text().split()[1]) * _PAGE


def growth(samples: list[int]) -> float:
    """Return by which share the last fifth of the samples is above those just after the warm-up, by their medians."""
    fifth = max(1, len(samples) // 5)
    begin = int(len(samples) * _WARM)
    early, late = np.median(samples[begin : begin + fifth]), np.median(samples[-fifth:])
    return float(late / early - 1.0)


class Watch:
    """Samples of a process's memory; each is told on the error stream, for loads that take an hour."""

    def __init__(self, pid: int | None = None) -> None:
        self.pid = pid
        self.samples: list[int] = []
        self._began_s = time.monotonic()

    def look(self, num_done: int) -> None:
        """Take a sample, and say how much has been done by now."""
        self.samples.append(resident_bytes(self.pid))
        seconds = time.monotonic() - self._began_s
        print(f"{seconds:7.0f} s {num_done:9,} done {self.samples[-1] / 2**20:8.1f} MiB", file=sys.stderr, flush=True)
