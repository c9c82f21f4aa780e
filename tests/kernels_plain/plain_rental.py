"""Renting: a graph on rented nodes, and one job on the spot market by every rule and in hindsight."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from stretto.core.graph import TaskGraph
from stretto.core.pool import Pool
from stretto.graphs.rental.goal import RentalGoal
from stretto.graphs.rental.search import rent
from stretto.graphs.rental.spot import RULES, SpotJob, SpotParams, SpotTables, hindsight, run_spot


def cases() -> Iterator[tuple[str, Any]]:
    graph = TaskGraph.from_edges([60.0, 120.0, 90.0, 30.0], [0, 0, 1, 2], [1, 2, 3, 3], 1e9)
    pools = [Pool("own", 1), Pool("cloud", 2, procs_per_node=2, price_usd_per_hour=1.0, provision_s=30.0, min_nodes=0)]
    for goal in (RentalGoal(), RentalGoal("time", 250.0)):
        best = rent(graph, pools, goal)[0]
        yield f"rent for {goal.objective}", (best.schedule, best.rentals)
    job = SpotJob(6000.0, 9600.0, 300.0, 0.3)
    tables = SpotTables(job, SpotParams(num_lengths=2, factor=20.0, num_ticks=10))
    available = np.random.default_rng(4).random(20) < 0.6
    for rule in RULES:
        yield f"spot {rule}", run_spot(tables, available, 600.0, rule=rule, starts=(0, 3))
    yield "spot hindsight", hindsight(job, available, 600.0, 300.0)
