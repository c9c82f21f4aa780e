"""What a user is told while kernels are compiled for the first time."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from numba import njit
from numba.extending import overload

from stretto.cli.progress import COMPILING, SILENT_S, ProgressBar, ProgressLine
from stretto.core.kernels.compile import is_compiling
from stretto.core.kernels.records import IS_PLAIN

pytestmark = pytest.mark.skipif(IS_PLAIN, reason="nothing is compiled without the JIT")


def during_a_compilation(look: Callable[[], None]) -> None:
    """Compile a kernel whose callee calls ``look`` while it is compiled."""

    def callee(number: int) -> int:
        raise NotImplementedError

    @overload(callee, strict=False)
    def typed_callee(number: object) -> Callable[[int], int]:
        look()
        return lambda number: number + 1

    @njit
    def kernel(number: int) -> int:
        return int(callee(number))

    assert kernel(1) == 2


def test_a_kernel_is_being_compiled_only_while_it_is() -> None:
    seen: list[bool] = []
    assert not is_compiling()
    during_a_compilation(lambda: seen.append(is_compiling()))
    assert seen
    assert all(seen)
    assert not is_compiling()


def test_progress_says_that_kernels_are_compiled() -> None:
    line, bar, seen = ProgressLine("comparing"), ProgressBar("replaying jobs", 3), []
    line._begin -= 2 * SILENT_S

    def look() -> None:
        seen.extend([line.line(100).plain, bar.line(100).plain])

    during_a_compilation(look)
    assert len(seen) >= 2
    assert all(text.endswith(COMPILING) for text in seen)
    assert not line.line(100).plain.endswith(COMPILING)
