"""Names for the arrays that kernels take, so that their signatures can be read and checked."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from stretto.core.problem import ProblemArrays

Floats = NDArray[np.float64]
Singles = NDArray[np.float32]
Ints = NDArray[np.int32]
Longs = NDArray[np.int64]
Flags = NDArray[np.uint8]  # 0 or 1
Words = NDArray[np.uint64]  # the state of a random generator
Records = NDArray[np.void]  # one record per item, made by ``records.record``

#: The arrays of a compiled problem; kernels stand below ``stretto.core.problem`` and do not import it.
Arrays: TypeAlias = "ProblemArrays"
