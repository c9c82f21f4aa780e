"""Rented nodes of a run: what they cost, and that each is kept until its last task has ended and released then."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from typing import Any

import numpy as np

from stretto.core.cluster import Cluster
from stretto.core.plan import Plan
from stretto.engines.engine import RunResult
from stretto.engines.rented_nodes import RentalTerms, RentedNodes
from stretto.graphs.rental.billing import Rental
from stretto.runlog.record import Event

_BILLING_S, _MINIMUM_S = 10.0, 30.0


def draw_rentals(rng: random.Random, plan: Plan, cluster: Cluster) -> RentedNodes:
    """Rent some of the devices of a plan, each for all its tasks."""
    names = [device.name for device in cluster.devices]
    rented = [device for device in range(len(names)) if rng.random() < 0.7]
    rentals = tuple(
        Rental(names[device], "cloud", "on demand", 0.0, 0.0, 1.0, 1.0, rng.choice([0.4, 3.0]), 0.0, 1)
        for device in rented
    )
    terms = {names[device]: RentalTerms(_BILLING_S, _MINIMUM_S) for device in rented}
    rental_of = {task: rented.index(d) for task, d in enumerate(plan.assignment.tolist()) if d in rented}
    return RentedNodes(rentals, terms, (), rental_of, {name: place for place, name in enumerate(names)})


def check_rentals(world: Any, rented: RentedNodes, result: RunResult, events: Sequence[Event]) -> None:
    """Check the releases and the bill of the last part of a run; ``events`` are the whole log."""
    truth, need = world.truth, world.clock.need
    ended: set[int] = set()
    open_rentals: set[int] = set()  # those of which a task has ended since the last release
    place = {one.node: number for number, one in enumerate(rented.rentals)}
    for event in events:
        if event.kind == "task-finished":
            task = truth.names[event.subject]
            ended.add(task)
            if result.is_finished[task] and task in rented.rental_of:
                open_rentals.add(rented.rental_of[task])
        elif event.kind == "device-lost" and str(event.fields.get("reason", "")).startswith("released"):
            rental = place[event.subject]
            missing = {task for task, one in rented.rental_of.items() if one == rental} - ended
            need(not missing, f"node {event.subject} is released, and tasks {missing} have not ended")
            open_rentals.discard(rental)
    need(not open_rentals, f"rented nodes {open_rentals} are kept although their tasks have ended")
    for found in rented.actual(result, 1.0):
        rental = place[found.node]
        mine = [task for task, one in rented.rental_of.items() if one == rental and result.is_finished[task]]
        used_s = float(np.max(result.end_s[mine]) - np.min(result.start_s[mine]))
        paid_s = max(_MINIMUM_S, _BILLING_S * math.ceil(used_s / _BILLING_S - 1e-9))
        cost = rented.rentals[rental].price_usd_per_hour * paid_s / 3600.0
        need(
            abs(found.cost_usd - cost) < 1e-9, f"node {found.node} is billed {found.cost_usd:.5f} and costs {cost:.5f}"
        )
