"""Ask somebody who may never answer."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, TypeVar

T = TypeVar("T")


def in_background(function: Callable[..., T], *arguments: Any) -> Future[T]:
    """Call a function in a thread of its own and return its future.

    Unlike a worker of an executor, a thread that hangs does not keep the program from ending.
    """
    future: Future[T] = Future()

    def call() -> None:
        try:
            future.set_result(function(*arguments))
        except BaseException as error:  # told to whoever asks for the result
            future.set_exception(error)

    threading.Thread(target=call, name="stretto-decide", daemon=True).start()
    return future
