"""Run a coroutine whatever loop this thread has: Playwright, which other tests use, leaves one running in it."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

T = TypeVar("T")


def run_alone(what: Coroutine[Any, Any, T]) -> T:
    """Return what a coroutine comes to in a thread of its own."""
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(asyncio.run, what).result()
