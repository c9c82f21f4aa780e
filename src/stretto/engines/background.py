"""Ask somebody who may never answer."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable
from concurrent.futures import Future
from queue import SimpleQueue
from typing import Any, TypeVar

T = TypeVar("T")
_Job = tuple[Future[Any], Callable[..., Any], tuple[Any, ...]]


def in_background(function: Callable[..., T], *arguments: Any) -> Future[T]:
    """Call a function in a thread of its own and return its future.

    Unlike a worker of an executor, a thread that hangs does not keep the program from ending.
    """
    future: Future[T] = Future()
    threading.Thread(target=_call, args=(future, function, arguments), name="stretto-decide", daemon=True).start()
    return future


class Clerk:
    """Calls one function after the other in a thread that stays, for those who ask often; it ends with its object."""

    def __init__(self) -> None:
        self._jobs: SimpleQueue[_Job | None] = SimpleQueue()
        threading.Thread(target=_serve, args=(self._jobs,), name="stretto-decide", daemon=True).start()
        weakref.finalize(self, self._jobs.put, None)

    def ask(self, function: Callable[..., T], *arguments: Any) -> Future[T]:
        """Return the future of a call; it waits for those before it."""
        future: Future[T] = Future()
        self._jobs.put((future, function, arguments))
        return future


def _serve(jobs: SimpleQueue[_Job | None]) -> None:
    while (job := jobs.get()) is not None:
        _call(*job)
        del job  # or the last question would be kept alive until the next


def _call(future: Future[Any], function: Callable[..., Any], arguments: tuple[Any, ...]) -> None:
    try:
        future.set_result(function(*arguments))
    except BaseException as error:  # told to whoever asks for the result
        future.set_exception(error)
