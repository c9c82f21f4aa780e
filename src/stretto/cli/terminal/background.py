"""Long compiled work beside the main thread, so that Ctrl-C is answered at once and not when the work returns."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


def in_background(work: Callable[[], T]) -> T:
    """Run something in another thread and wait for its result; a KeyboardInterrupt leaves the thread behind.

    Compiled code cannot be stopped from outside. The thread is a daemon: it ends with the program.
    """
    results: list[T] = []
    errors: list[BaseException] = []

    def run() -> None:
        try:
            results.append(work())
        except BaseException as error:
            errors.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join()
    if errors:
        raise errors[0]
    return results[0]
