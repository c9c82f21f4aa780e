"""Memory that is given back: how the server's process allocates, and in how many threads it reads."""

from __future__ import annotations

import asyncio
import ctypes
from concurrent.futures import ThreadPoolExecutor

import anyio.to_thread

#: Threads that read the run log. It is read by one at a time: more of them only wait.
NUM_THREADS = 4
#: Larger pieces come from the kernel and go back to it, whatever lies beside them.
_MAPPED_FROM_BYTES = 128 * 1024
# Names of glibc's malloc.h, which ctypes cannot read.
_M_MMAP_THRESHOLD, _M_ARENA_MAX = -3, -8


def limit_arenas() -> bool:
    """Have all threads allocate from one heap; say whether the C library can do that.

    By itself glibc gives threads heaps of their own, eight for each core, and gives nothing back that lies below
    anything still in use. With answers made in one thread and sent from another these heaps grew for hours, while
    what was in use stayed the same. Must be called before threads are started.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is None:  # another C library, which does it its own way
        return False
    return bool(mallopt(_M_ARENA_MAX, 1)) and bool(mallopt(_M_MMAP_THRESHOLD, _MAPPED_FROM_BYTES))


def limit_threads() -> None:
    """Have the loop that runs, and the framework on it, start few threads; each would keep a stack and a heap."""
    anyio.to_thread.current_default_thread_limiter().total_tokens = NUM_THREADS
    asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(NUM_THREADS, "stretto-web"))
