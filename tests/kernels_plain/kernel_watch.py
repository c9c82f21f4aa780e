"""Notes which kernels are called when they run as plain Python; import it before any of them."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable
from typing import Any

import numba

SEEN: set[str] = set()


def watched(*functions: Callable[..., Any], **options: Any) -> Any:
    """Stand in for ``njit`` where nothing is compiled."""
    return _mark(*functions) if functions else _mark


def _mark(function: Callable[..., Any]) -> Callable[..., Any]:
    name = f"{function.__module__.removeprefix('stretto.')}.{function.__name__}"

    @functools.wraps(function)
    def call(*arguments: Any, **named: Any) -> Any:
        SEEN.add(name)
        return function(*arguments, **named)

    return call


if os.environ.get("NUMBA_DISABLE_JIT", "0") not in ("", "0"):
    numba.njit = watched
