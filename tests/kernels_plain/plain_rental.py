"""Renting: one job on the spot market, by every rule, and in hindsight."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from stretto.graphs.rental.spot import RULES, SpotJob, SpotParams, SpotTables, hindsight, run_spot


def cases() -> Iterator[tuple[str, Any]]:
    job = SpotJob(6000.0, 9600.0, 300.0, 0.3)
    tables = SpotTables(job, SpotParams(num_lengths=2, factor=20.0, num_ticks=10))
    available = np.random.default_rng(4).random(20) < 0.6
    for rule in RULES:
        yield f"spot {rule}", run_spot(tables, available, 600.0, rule=rule, starts=(0, 3))
    yield "spot hindsight", hindsight(job, available, 600.0, 300.0)
