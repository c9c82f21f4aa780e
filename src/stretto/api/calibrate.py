"""``stretto.calibrate``: measure what operations cost on the devices of this machine."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from stretto.files.cost_table import CostTable
from stretto.files.load import write_atomically


def calibrate(target: str | Path | None = None, *, devices: Sequence[Any] | None = None, repeats: int = 7) -> CostTable:
    """Measure classes of operations and copies on devices of JAX; ``stretto.place(..., costs=FILE)`` plans with them.

    Parameters
    ----------
    target
        The file to write.
    devices
        By default ``jax.devices()``.
    repeats
        The shortest of so many runs counts.
    """
    from stretto.engines.jax_calibrate import calibrate_jax

    table = calibrate_jax(devices, repeats=repeats)
    if target is not None:
        write_atomically(Path(target), table.to_bytes())
    return table
