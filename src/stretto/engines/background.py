"""Calls that may never return, in threads that do not keep the program from ending."""

from __future__ import annotations

import threading
import time
import weakref
from collections.abc import Callable
from concurrent.futures import Future
from functools import partial
from queue import SimpleQueue
from typing import TypeVar

T = TypeVar("T")


def in_background(function: Callable[..., T], *arguments: object) -> Future[T]:
    """Call a function in a thread of its own and return its future."""
    future: Future[T] = Future()
    threading.Thread(target=_call, args=(future, function, arguments), name="stretto-decide", daemon=True).start()
    return future


class BackgroundThread:
    """Calls one function after the other in a thread that ends with this object."""

    def __init__(self) -> None:
        self._jobs: SimpleQueue[Callable[[], None] | None] = SimpleQueue()
        threading.Thread(target=_serve, args=(self._jobs,), name="stretto-decide", daemon=True).start()
        weakref.finalize(self, self._jobs.put, None)

    def submit(self, function: Callable[..., T], *arguments: object) -> Future[T]:
        """Return the future of a call, which waits for those before it."""
        future: Future[T] = Future()
        self._jobs.put(partial(_call, future, function, arguments))
        return future


def wait_until(is_true: Callable[[], bool], *, timeout_s: float, pause_s: float = 0.05) -> bool:
    """Wait for a condition; return whether it became true in time."""
    deadline = time.monotonic() + timeout_s
    while not is_true():
        if time.monotonic() > deadline:
            return False
        time.sleep(pause_s)
    return True


def _serve(jobs: SimpleQueue[Callable[[], None] | None]) -> None:
    while (job := jobs.get()) is not None:
        job()
        del job  # or the arguments of the last call would be kept alive until the next


def _call(future: Future[T], function: Callable[..., T], arguments: tuple[object, ...]) -> None:
    try:
        future.set_result(function(*arguments))
    except BaseException as error:  # raised for whoever asks for the result
        future.set_exception(error)
