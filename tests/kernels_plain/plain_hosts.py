"""Look-ahead on hosts: rollouts of random states."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from racks.host.host_cases import rollout_inputs
from stretto.racks.kernels.host_rollout import price


def cases() -> Iterator[tuple[str, Any]]:
    for seed in range(6):
        *rest, first = rollout_inputs(seed)
        yield f"host {seed} start", price(*rest, first)
