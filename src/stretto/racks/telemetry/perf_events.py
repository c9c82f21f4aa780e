"""Events that the kernel counts for whoever may ask: cycles, instructions, cache misses, switches, faults.

``perf_event_open`` is a system call without a wrapper in the C library; it is made through ctypes, with
numbers only. A virtual machine often has no hardware events at all and a container may not be let near them: each event
that cannot be had says why, and the others are read all the same. Some machines open an event and never count it:
those of which this process is sure to cause some are tried before they are believed.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import mmap
import os
import platform
import struct
from dataclasses import dataclass, field
from typing import NamedTuple

#: Number of the system call by machine.
_SYSCALL = {"x86_64": 298, "aarch64": 241, "ppc64le": 319}
_HARDWARE, _SOFTWARE = 0, 1
_ATTR_BYTES = 128
#: Times enabled and running come with each value, so that events which shared a counter can be scaled up.
_READ_FORMAT = 1 | 2
_INHERIT, _NO_KERNEL, _NO_HYPERVISOR = 1 << 1, 1 << 5, 1 << 6
_CLOSE_ON_EXEC = 8
_WHY = {
    errno.ENOENT: "this machine does not count it (usual in a virtual machine)",
    errno.ENODEV: "this machine does not count it",
    errno.EOPNOTSUPP: "this machine does not count it",
    errno.EACCES: "not permitted: see /proc/sys/kernel/perf_event_paranoid",
    errno.EPERM: "not permitted: see /proc/sys/kernel/perf_event_paranoid",
    errno.ENOSYS: "this kernel has no perf events",
}


class PerfEvent(NamedTuple):
    """An event by name, and what the kernel and Intel's PCM call it."""

    name: str
    kind: int
    config: int
    pcm: str


EVENTS = (
    PerfEvent("cycles", _HARDWARE, 0, "ACYC"),
    PerfEvent("instructions", _HARDWARE, 1, "INST"),
    PerfEvent("llc-references", _HARDWARE, 2, "L3REF"),
    PerfEvent("llc-misses", _HARDWARE, 3, "L3MISS"),
    PerfEvent("cpu-clock-ns", _SOFTWARE, 0, ""),
    PerfEvent("page-faults", _SOFTWARE, 2, ""),
    PerfEvent("context-switches", _SOFTWARE, 3, ""),
)
#: What :func:`touch_pages` and the time it takes must move, on any machine that counts them at all.
_SURE = ("cycles", "instructions", "cpu-clock-ns", "page-faults")


@dataclass
class PerfCounters:
    """Open counters of the whole machine where that is permitted, else of this process and what it starts.

    Use it as a context; :meth:`totals` can be read as often as one likes.
    """

    is_whole_machine: bool = False
    notes: list[str] = field(default_factory=list)
    _files: dict[str, list[int]] = field(default_factory=dict)

    def __enter__(self) -> PerfCounters:
        cpus = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else []
        self.is_whole_machine = bool(cpus) and self._can(cpus[0])
        places = [(-1, cpu) for cpu in cpus] if self.is_whole_machine else [(0, -1)]
        for event in EVENTS:
            opened = []
            for pid, cpu in places:
                file, why = open_event(event, pid, cpu)
                if file is None:
                    self.notes.append(f"{event.name}: {why}")
                    break
                opened.append(file)
            if opened:
                self._files[event.name] = opened
        self._leave_out_dead_ones()
        return self

    def __exit__(self, *_: object) -> None:
        for files in self._files.values():
            _close(files)
        self._files.clear()

    def totals(self) -> dict[str, float]:
        """Return the count of each event since it was opened, scaled up where it had to share a counter."""
        return {name: sum(map(_read, files)) for name, files in self._files.items()}

    def _leave_out_dead_ones(self) -> None:
        before = self.totals()
        touch_pages(256)
        after = self.totals()
        for name in _SURE:
            if name in after and after[name] <= before[name]:
                self.notes.append(f"{name}: this machine opens it and counts nothing")
                _close(self._files.pop(name))

    def _can(self, cpu: int) -> bool:
        """Say whether the whole machine may be watched, by an event that every kernel has."""
        file, _ = open_event(EVENTS[4], -1, cpu)
        if file is not None:
            os.close(file)
        return file is not None


def open_event(event: PerfEvent, pid: int, cpu: int) -> tuple[int | None, str]:
    """Return an open counter, or None and why there is none."""
    number = _SYSCALL.get(platform.machine())
    if number is None or platform.system() != "Linux":
        return None, f"not known for {platform.system()} on {platform.machine()}"
    flags = _NO_HYPERVISOR | (_INHERIT | _NO_KERNEL if pid == 0 else 0)
    head = struct.pack("<IIQQQQQ", event.kind, _ATTR_BYTES, event.config, 0, 0, _READ_FORMAT, flags)
    attr = ctypes.create_string_buffer(head, _ATTR_BYTES)
    library = ctypes.CDLL(None, use_errno=True)
    file = int(library.syscall(number, attr, pid, cpu, -1, _CLOSE_ON_EXEC))
    if file >= 0:
        return file, ""
    code = ctypes.get_errno()
    return None, _WHY.get(code, os.strerror(code))


def touch_pages(num_pages: int) -> None:
    """Write to fresh pages of memory, each of which costs a fault."""
    with mmap.mmap(-1, num_pages * mmap.PAGESIZE) as pages:
        if hasattr(mmap, "MADV_NOHUGEPAGE"):
            with contextlib.suppress(OSError):  # a kernel without huge pages does not know the word
                pages.madvise(mmap.MADV_NOHUGEPAGE)
        for start in range(0, len(pages), mmap.PAGESIZE):
            pages[start] = 1


def _close(files: list[int]) -> None:
    for file in files:
        os.close(file)


def _read(file: int) -> float:
    value, enabled, running = struct.unpack("<QQQ", os.read(file, 24))
    return value * enabled / running if running else 0.0
