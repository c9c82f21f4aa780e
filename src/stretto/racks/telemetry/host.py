"""What this host tells of itself, as readings in the simulator's schema.

Linux only offers some of it to everybody: CPU time per core and network bytes under ``/proc`` and ``/sys``, limits
and throttling of a control group, and hardware events where the kernel permits (``perf_events``). What cannot be
read is missing, never an error: a reading with no samples is what a belief expects of a counter that had no turn.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from stretto.core.csr import Floats
from stretto.errors import InvalidInput
from stretto.racks.telemetry.perf_events import PerfCounters

#: Instructions that a core issues in a cycle at best, and what a miss of the last cache moves.
ISSUE_WIDTH, _LINE_BYTES = 4.0, 64.0


@dataclass(frozen=True)
class HostReading:
    """Samples of one window: utilization between 0 and 1 (or bytes per second over capacity) by source.

    Attributes
    ----------
    mean, sd, num
        As in ``kernels/rack_counters.Readings``, one entry per name; ``num`` 0 says that nothing could be read.
    notes
        What could not be read, and why, for a person.
    """

    names: tuple[str, ...]
    mean: Floats
    sd: Floats
    num: np.ndarray
    notes: tuple[str, ...] = ()


def summarised(rows: Sequence[Mapping[str, float]], notes: tuple[str, ...] = ()) -> HostReading:
    """Return samples by source as a reading; what is missing or no number in a sample does not count in it."""
    names = tuple(sorted({name for row in rows for name in row}))
    values = np.array([[row.get(name, math.nan) for name in names] for row in rows]).reshape(len(rows), -1)
    is_there = np.isfinite(values)
    num = is_there.sum(axis=0)
    mean = np.where(is_there, values, 0.0).sum(axis=0) / np.maximum(num, 1)
    gap = np.where(is_there, values - mean, 0.0)
    sd = np.sqrt((gap**2).sum(axis=0) / np.maximum(num - 1, 1))
    return HostReading(names, mean, sd, np.where(num >= 2, num, 0), notes)


@dataclass
class HostTelemetry:
    """Reads a host; the root can be another folder, for tests and containers.

    Attributes
    ----------
    memory_bytes_per_s
        What memory can move at best, which no file tells; traffic is given as a share of it.
    """

    root: Path = Path("/")
    clock: Callable[[], float] = time.monotonic
    memory_bytes_per_s: float = 20e9
    _before: dict[str, tuple[float, float]] = field(default_factory=dict)

    def read(self, *, num_samples: int = 4, interval_s: float = 0.05) -> HostReading:
        """Take several samples and return their mean and spread per source."""
        if num_samples < 2 or not interval_s > 0:
            raise InvalidInput("take at least 2 samples, some time apart", field="num_samples")
        rows: list[dict[str, float]] = []
        with PerfCounters() as perf:
            is_here = self.root == Path("/")
            before = perf.totals() if is_here else {}
            self.sample()
            begun_s = self.clock()
            for _ in range(num_samples):
                time.sleep(interval_s)
                rows.append(self.sample())
                if is_here:
                    ended_s, after = self.clock(), perf.totals()
                    rows[-1] |= self._events(before, after, ended_s - begun_s)
                    begun_s, before = ended_s, after
            hardware = perf.notes if is_here else ["hardware events: this is not the host itself"]
        return summarised(rows, (*hardware, *self._notes()))

    def sample(self) -> dict[str, float]:
        """Return rates since the sample before; counters that went backwards are left out."""
        now_s = self.clock()
        found: dict[str, float] = {}
        for name, total, capacity in self._totals():
            before = self._before.get(name)
            self._before[name] = (now_s, total)
            if before is not None and now_s > before[0] and total >= before[1]:
                found[name] = (total - before[1]) / (now_s - before[0]) / capacity
        found |= self._memory()
        return found

    def _totals(self) -> Iterable[tuple[str, float, float]]:
        """Counters that grow: name, total, and what they grow by in a second at full use."""
        yield from self._cpus()
        yield from self._networks()
        yield from self._disks()
        yield from self._throttling()
        yield from self._pressure()

    def _text(self, path: str) -> str:
        try:
            return (self.root / path).read_text(errors="replace")
        except OSError:
            return ""

    def _cpus(self) -> Iterable[tuple[str, float, float]]:
        """Seconds of work of each CPU; idle and waiting for disks do not count."""
        for line in self._text("proc/stat").splitlines():
            words = line.split()
            if len(words) >= 6 and words[0].startswith("cpu") and words[0] != "cpu":
                ticks = [float(word) for word in words[1:9] if word.isdigit()]
                yield f"core/{words[0]}", (sum(ticks) - sum(ticks[3:5])) / 100.0, 1.0

    def _networks(self) -> Iterable[tuple[str, float, float]]:
        """Bytes through each network interface, over its speed where the driver says one."""
        for line in self._text("proc/net/dev").splitlines()[2:]:
            name, _, rest = line.partition(":")
            words = rest.split()
            if len(words) >= 9 and name.strip() != "lo":
                speed = self._text(f"sys/class/net/{name.strip()}/speed").strip()
                megabits = float(speed) if speed.isdigit() and int(speed) > 0 else 10_000.0
                yield f"nic/{name.strip()}", float(words[0]) + float(words[8]), megabits * 1e6 / 8

    def _disks(self) -> Iterable[tuple[str, float, float]]:
        """Seconds for which each disk had requests; partitions and devices in memory are left out."""
        for line in self._text("proc/diskstats").splitlines():
            words = line.split()
            is_disk = len(words) >= 13 and (self.root / "sys/block" / words[2]).exists()
            if is_disk and not words[2].startswith(("loop", "ram", "zram")) and words[12].isdigit():
                yield f"disk/{words[2]}", float(words[12]) / 1e3, 1.0

    def _throttling(self) -> Iterable[tuple[str, float, float]]:
        """Seconds for which the control group was held back, in either version of control groups."""
        for path, key, per_s in (("cpu.stat", "throttled_usec", 1e6), ("cpu/cpu.stat", "throttled_time", 1e9)):
            for line in self._text(f"sys/fs/cgroup/{path}").splitlines():
                name, _, value = line.partition(" ")
                if name == key and value.strip().isdigit():
                    yield "cgroup/throttled", float(value) / per_s, 1.0
                    return

    def _pressure(self) -> Iterable[tuple[str, float, float]]:
        """Seconds for which some task of the host waited for CPU, memory or disks (pressure stall information)."""
        for what in ("cpu", "memory", "io"):
            for line in self._text(f"proc/pressure/{what}").splitlines():
                total = line.rpartition("total=")[2]
                if line.startswith("some") and total.isdigit():
                    yield f"pressure/{what}", float(total) / 1e6, 1.0

    def _memory(self) -> dict[str, float]:
        """Share of memory in use, of the control group's limit where there is one."""
        fields = {}
        for line in self._text("proc/meminfo").splitlines():
            key, _, rest = line.partition(":")
            words = rest.split()
            if words and words[0].isdigit():
                fields[key] = float(words[0]) * 1024
        total, free = fields.get("MemTotal", 0.0), fields.get("MemAvailable", 0.0)
        limit, used = (self._text(f"sys/fs/cgroup/memory.{name}").strip() for name in ("max", "current"))
        if limit.isdigit() and used.isdigit() and 0 < int(limit) < total:
            return {"memory/in-use": int(used) / int(limit)}
        return {"memory/in-use": 1.0 - free / total} if total > 0 else {}

    def _events(self, before: dict[str, float], after: dict[str, float], seconds: float) -> dict[str, float]:
        """Return shares from hardware events, of those that this host counts: issue slots, and traffic by misses."""
        done = {name: after[name] - before[name] for name in after if name in before}
        found = {}
        if done.get("cycles", 0.0) > 0 and "instructions" in done:
            found["perf/issue-slots"] = done["instructions"] / done["cycles"] / ISSUE_WIDTH
        if "llc-misses" in done and seconds > 0:
            found["perf/llc-traffic"] = done["llc-misses"] * _LINE_BYTES / seconds / self.memory_bytes_per_s
        return found

    def _notes(self) -> Iterable[str]:
        if not self._text("proc/stat"):
            yield "core utilization: /proc/stat cannot be read"
