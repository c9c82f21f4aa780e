"""Wait for a word in memory without the interpreter's lock, for a bounded time.

A sleeping thread takes 15 microseconds or more to wake up; one that watches a word sees it change at once. The words
of others are set *after* the lock is gone: whoever sees his word then finds the lock free, instead of going to sleep
for it. Without a compiler (``NUMBA_DISABLE_JIT=1``) nothing is waited for, because the lock would be held meanwhile.
"""

from __future__ import annotations

import time
from functools import cache
from typing import Any, TypeAlias

import numpy as np
from llvmlite import ir  # type: ignore[import-untyped]
from numba import config, types
from numba.extending import intrinsic

from stretto.core.kernels.compile import njit

#: An object of numba's code generator.
Compiler: TypeAlias = Any
IS_PLAIN = bool(config.DISABLE_JIT)
_TRIAL_ROUNDS = 20_000


@intrinsic
def _look_again(typingctx: object) -> tuple[object, object]:
    """Keep the compiler from remembering what it has read: another thread may have written meanwhile."""

    def generate(context: Compiler, builder: Compiler, signature: object, arguments: object) -> object:
        barrier = ir.InlineAsm(ir.FunctionType(ir.VoidType(), []), "", "~{memory}", side_effect=True)
        builder.call(barrier, [])
        return context.get_dummy_value()

    return types.void(), generate


def _nothing() -> None:
    """Stand in for the barrier where nothing is compiled."""


if IS_PLAIN:
    _look_again = _nothing


@njit(cache=True, nogil=True)
def signal_and_watch(words: np.ndarray, mine: int, others: np.ndarray, num_others: int, num_rounds: int) -> bool:
    """Set the words of others to 1, then watch one's own and take it back to 0; return whether it was set.

    ``words`` are int64, a cache line apart: ``words[8 * i]`` is the word of i.
    """
    for i in range(num_others):
        words[8 * others[i]] = 1
    at = 8 * mine
    for _ in range(num_rounds):
        _look_again()
        if words[at] != 0:
            words[at] = 0
            return True
    return False


@cache
def rounds_in(seconds: float) -> int:
    """Return how many rounds of watching take about so long here; 0 where nothing is compiled."""
    if IS_PLAIN:
        return 0
    words, nobody = np.zeros(8, dtype=np.int64), np.zeros(1, dtype=np.int64)
    signal_and_watch(words, 0, nobody, 0, 1)
    best_s = float("inf")
    for _ in range(3):
        begin_s = time.perf_counter()
        signal_and_watch(words, 0, nobody, 0, _TRIAL_ROUNDS)
        best_s = min(best_s, time.perf_counter() - begin_s)
    return max(1, int(seconds / best_s * _TRIAL_ROUNDS))
