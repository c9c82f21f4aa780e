"""How long a server's answers took: on the wall, and in processor time of the server and its workers."""

from __future__ import annotations

import os
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

import numpy as np

_TICKS_PER_S = os.sysconf("SC_CLK_TCK")


class Answers:
    """Answers of one server, by what was asked."""

    def __init__(self, pid: int) -> None:
        self.tally: Counter[str] = Counter()
        self._pid = pid
        self._seconds: defaultdict[str, list[float]] = defaultdict(list)
        self._cpu_s = cpu_seconds(pid)

    def add(self, what: str, outcome: str, seconds: float) -> None:
        """Count an answer, or the error that came in its place."""
        self.tally[f"{what} {outcome}"] += 1
        if outcome.isdecimal():
            self._seconds[what].append(seconds)

    def summary(self) -> dict[str, Any]:
        """Return milliseconds of wall time (median, p99, longest), and of processor time per answer."""
        count = sum(len(seconds) for seconds in self._seconds.values())
        used_s = cpu_seconds(self._pid) - self._cpu_s
        return {
            "wall_ms": {what: _quantiles(seconds) for what, seconds in sorted(self._seconds.items())},
            "cpu_s": round(used_s, 1),
            "cpu_ms_per_answer": round(1e3 * used_s / max(1, count), 2),
        }


def _quantiles(seconds: list[float]) -> dict[str, float]:
    found = {"p50": np.quantile(seconds, 0.5), "p99": np.quantile(seconds, 0.99), "max": max(seconds)}
    return {"n": len(seconds), **{name: round(1e3 * float(value), 1) for name, value in found.items()}}


def cpu_seconds(pid: int) -> float:
    """Return the processor time of a process, of its children, and of theirs, whether they have ended or not."""
    ticks, parents = {}, {}
    for entry in Path("/proc").glob("[0-9]*/stat"):
        try:
            words = entry.read_text().rsplit(")", 1)[1].split()
        except OSError:  # it has ended meanwhile
            continue
        number = int(entry.parent.name)
        parents[number], ticks[number] = int(words[1]), sum(map(int, words[11:15]))
    mine = {pid}
    while more := {child for child, parent in parents.items() if parent in mine} - mine:
        mine |= more
    return sum(ticks.get(number, 0) for number in mine) / _TICKS_PER_S
