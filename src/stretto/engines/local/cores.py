"""One core and one BLAS thread per device: otherwise devices would share what they are said to own."""

from __future__ import annotations

import ctypes
import os
import threading
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from functools import cache


def usable_cores() -> list[int]:
    """Return the cores that this process may use."""
    return sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else list(range(os.cpu_count() or 1))


def pin(cores: int | Collection[int] | None) -> None:
    """Keep the calling thread on one core, or on several; None leaves it as it is."""
    if cores is not None and hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(threading.get_native_id(), {cores} if isinstance(cores, int) else cores)


@cache
def _openblas() -> tuple[tuple[Callable[[int], object], Callable[[], int]], ...]:
    """Return (set, get) of the number of threads for each OpenBLAS that is loaded."""
    # By hand: psutil's list of mapped files reads the memory of each, too, which is not needed here.
    try:
        with open("/proc/self/maps") as maps:
            paths = {line.split()[-1] for line in maps if "openblas" in line and line.rstrip().endswith(tuple(_ENDS))}
    except OSError:
        return ()
    found = []
    for path in sorted(paths):
        library = ctypes.CDLL(path)
        for prefix in ("scipy_", ""):
            for suffix in ("64_", ""):
                setter = getattr(library, f"{prefix}openblas_set_num_threads{suffix}", None)
                getter = getattr(library, f"{prefix}openblas_get_num_threads{suffix}", None)
                if setter is not None and getter is not None:
                    found.append((setter, getter))
    return tuple(found)


_ENDS = (".so", ".so.0", *(f".so.{n}" for n in range(1, 4)))


def use_one_blas_thread() -> None:
    """Make numpy's matrix products single-threaded in this process."""
    import numpy.linalg  # noqa: F401  the library must be loaded to be found

    for setter, _ in _openblas():
        setter(1)


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Make them single-threaded for a while."""
    import numpy.linalg  # noqa: F401

    before = [getter() for _, getter in _openblas()]
    use_one_blas_thread()
    try:
        yield
    finally:
        for (setter, _), number in zip(_openblas(), before, strict=True):
            setter(number)
