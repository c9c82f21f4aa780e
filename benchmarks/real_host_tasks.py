"""Tasks of ``real_host.py``: numpy work that is bound by a core, or by the memory that both cores share."""

from __future__ import annotations

import os
import time
from typing import Any

import numpy as np

SIDE, COPY_BYTES = 160, 128 << 20
_ARRAYS: dict[str, Any] = {}


def compute(rounds: int) -> float:
    """Multiply matrices that fit a core's own cache."""
    if "square" not in _ARRAYS:
        _ARRAYS["square"] = np.random.default_rng(0).random((SIDE, SIDE))
    square = _ARRAYS["square"]
    for _ in range(rounds):
        product = square @ square
    return float(product[0, 0])


def copy(rounds: int) -> float:
    """Copy arrays that fit no cache."""
    if "source" not in _ARRAYS:
        _ARRAYS["source"], _ARRAYS["target"] = np.ones(COPY_BYTES // 8), np.zeros(COPY_BYTES // 8)
    for _ in range(rounds):
        np.copyto(_ARRAYS["target"], _ARRAYS["source"])
    return float(_ARRAYS["target"][-1])


def task(kind: int, rounds: int, number: int, marks: str) -> tuple[float, float]:
    """Do one task and leave a mark; return when it began and ended, by the clock that all processes share."""
    begin_s = time.monotonic()
    (copy if kind else compute)(rounds)
    with open(marks, "ab", buffering=0) as file:
        file.write(b"%d\n" % number)
    return begin_s, time.monotonic()


def warm(core: int) -> None:
    """Pin all threads of this process to a core, and touch the memory that tasks use."""
    for thread in os.listdir("/proc/self/task"):
        os.sched_setaffinity(int(thread), {core})
    compute(1)
    copy(1)
