"""How much memory this process may use: of the machine, of its container, or by its own limit."""

from __future__ import annotations

import os
import resource
from pathlib import Path

_CGROUP_FILES = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")


def machine_memory_bytes() -> int:
    """Return the memory of the machine, or of the container where that is less."""
    limits = [os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")]
    for name in _CGROUP_FILES:
        try:
            limits.append(int(Path(name).read_text()))
        except (OSError, ValueError):  # no such file, or "max"
            continue
    return min(limits)


def process_memory_bytes() -> int:
    """Return what this process may use: the machine's memory, or the limit of the process where that is less."""
    limits = [machine_memory_bytes()]
    for kind in (resource.RLIMIT_AS, resource.RLIMIT_DATA):
        soft, _ = resource.getrlimit(kind)
        if soft != resource.RLIM_INFINITY:
            limits.append(soft)
    return min(limits)
