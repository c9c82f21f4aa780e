"""CPU time as Linux counts it: of cores, of threads, and of processes with all that they have started.

Every reader takes the root of the file system, which tests replace, and returns nothing where a file is missing.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import NamedTuple

#: Ticks of the kernel's clock in a second, as its files count them on every common system.
TICKS_PER_S = 100.0
#: Processes of one tree that are counted.
_MAX_TREE = 256


class ThreadTime(NamedTuple):
    """Seconds that a thread has run, and waited for a core; the wait is NaN where the kernel does not count it."""

    run_s: float
    wait_s: float


def text_of(root: Path, path: str) -> str:
    """Return the content of a file, nothing where it cannot be read."""
    try:
        with open(os.path.join(root, path), encoding="utf-8", errors="replace") as file:
            return file.read()
    except OSError:
        return ""


def core_times(root: Path) -> dict[int, float]:
    """Return the seconds of work of every CPU since the system started; time taken by a hypervisor counts as work."""
    found = {}
    for line in text_of(root, "proc/stat").splitlines():
        if not line.startswith("cpu"):
            break  # what follows are interrupts: a long line
        words = line.split()
        number = words[0][3:]
        ticks = [float(word) for word in words[1:9] if word.isdigit()]
        if number.isdigit() and len(ticks) >= 5:
            found[int(number)] = (sum(ticks) - sum(ticks[3:5])) / TICKS_PER_S
    return found


def parse_cpu_list(text: str) -> frozenset[int]:
    """Return the numbers in a list such as ``0-3,8``; what is not a number is left out."""
    found: set[int] = set()
    for part in text.strip().split(","):
        first, _, last = part.partition("-")
        if first.isdigit() and (not last or last.isdigit()):
            found.update(range(int(first), min(int(last or first), int(first) + 65_535) + 1))
    return frozenset(found)


def online_cpus(root: Path) -> frozenset[int]:
    """Return the CPUs that are online; nothing where the system does not say."""
    return parse_cpu_list(text_of(root, "sys/devices/system/cpu/online"))


def thread_time(root: Path, pid: int, thread: int) -> ThreadTime | None:
    """Return the time of a thread; None where it is gone."""
    words = text_of(root, f"proc/{pid}/task/{thread}/schedstat").split()
    if len(words) >= 2 and words[0].isdigit() and words[1].isdigit():
        return ThreadTime(int(words[0]) / 1e9, int(words[1]) / 1e9)
    ticks = _ticks(text_of(root, f"proc/{pid}/task/{thread}/stat"), children=False)
    return None if ticks is None else ThreadTime(ticks / TICKS_PER_S, float("nan"))


def process_time(root: Path, pid: int) -> ThreadTime | None:
    """Return the time of all threads of a process; None where it is gone."""
    ticks = _ticks(text_of(root, f"proc/{pid}/stat"), children=False)
    return None if ticks is None else ThreadTime(ticks / TICKS_PER_S, float("nan"))


def tree_time(root: Path, pid: int) -> float:
    """Return the CPU seconds of all descendants of a process, ended ones included as far as they were waited for."""
    total, queue, num = 0.0, _children(root, pid), 0
    while queue and num < _MAX_TREE:
        child = queue.pop()
        num += 1
        total += _ticks(text_of(root, f"proc/{child}/stat"), children=True) or 0.0
        queue += _children(root, child)
    return total / TICKS_PER_S


def commands_time(root: Path, guard: int, cores: frozenset[int]) -> float:
    """Return the CPU seconds of the children of a process that may run on exactly these cores, with all below them."""
    total = 0.0
    for child in _children(root, guard):
        allowed = text_of(root, f"proc/{child}/status").partition("Cpus_allowed_list:")[2].partition("\n")[0]
        if parse_cpu_list(allowed) == cores:
            own = _ticks(text_of(root, f"proc/{child}/stat"), children=True) or 0.0
            total += own / TICKS_PER_S + tree_time(root, child)
    return total


def _children(root: Path, pid: int) -> list[int]:
    words = text_of(root, f"proc/{pid}/task/{pid}/children").split()
    return [int(word) for word in words if word.isdigit()]


def _ticks(stat: str, *, children: bool) -> float | None:
    """Return the ticks of user and system time, optionally with those of ended children."""
    words = stat.rpartition(")")[2].split()  # the name before may hold spaces
    wanted = words[11:15] if children else words[11:13]
    if len(wanted) < 2 or not all(word.isdigit() for word in wanted):
        return None
    return float(sum(int(word) for word in wanted))
