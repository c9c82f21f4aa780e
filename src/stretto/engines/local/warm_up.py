"""What a worker process does before the run begins, so that first tasks take no longer than later ones.

A page of memory that is touched for the first time costs several times as much as writing it: without this, how long a
task takes would depend on whether its block of memory had been used before.
"""

from __future__ import annotations

import contextlib
import ctypes

import numpy as np

#: At least so large a product uses all buffers that the library of products sets aside.
_PRODUCT = 256

_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3  # of mallopt, in malloc.h of glibc
_KEPT_BYTES = 1 << 30


def keep_freed_memory() -> None:
    """Let this process keep freed memory for its next arrays, instead of returning it to the system; glibc only."""
    with contextlib.suppress(OSError, AttributeError):
        mallopt = ctypes.CDLL(None).mallopt
        mallopt(_MMAP_THRESHOLD, _KEPT_BYTES)
        mallopt(_TRIM_THRESHOLD, _KEPT_BYTES)


def touch_products() -> None:
    """Have numpy's matrix products set up their buffers."""
    for kind in (np.float32, np.float64):
        square = np.ones((_PRODUCT, _PRODUCT), dtype=kind)
        square @ square
