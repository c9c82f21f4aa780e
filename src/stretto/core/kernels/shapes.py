"""Names for the arrays that kernels take, so that their signatures can be read and checked."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int32]
Words = NDArray[np.uint64]  # the state of a random generator

#: The ``ProblemArrays`` of ``stretto.core.problem``; kernels stand below it and cannot name it.
Arrays = Any
