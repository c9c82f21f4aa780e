"""Rented nodes in a run: when each is up and released, as events, and what its rental comes to by the times that were.

Stretto asks no provider for instances. On an engine of its own (local, Dask, Ray) the nodes of a plan are slots of the
machines at hand; on Slurm they are the nodes of those names.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from stretto.core.plan import Plan
from stretto.core.problem import Problem
from stretto.engines.driver.events import DeviceJoined, DeviceLost, Event, TaskFinished, TaskStarted
from stretto.engines.engine import RunResult
from stretto.graphs.rental.billing import Rental
from stretto.graphs.rental.kernels.rent import billed

#: Engines whose nodes are real ones, by name.
_REAL = ("slurm",)
_RELEASED = "released: its last task of this rental has ended"


@dataclass(frozen=True)
class RentalTerms:
    """How a rental is billed: per begun ``billing_s``, at least ``minimum_s``."""

    billing_s: float = 1.0
    minimum_s: float = 60.0


@dataclass(frozen=True, eq=False)
class RentedNodes:
    """The rentals of a plan, with the tasks of each.

    Attributes
    ----------
    ready_s
        When each node is up at the earliest, in seconds of the plan.
    """

    rentals: tuple[Rental, ...]
    terms: Mapping[str, RentalTerms]
    ready_s: tuple[float, ...]
    rental_of: Mapping[int, int]  # task to rental
    devices: Mapping[str, int]
    _left: dict[int, set[int]] = field(default_factory=dict)  # tasks that each rental waits for
    _up: set[int] = field(default_factory=set)

    @staticmethod
    def of(content: Mapping[str, Any], problem: Problem, plan: Plan) -> RentedNodes | None:
        """Return what a plan file rents; None where it rents nothing."""
        rentals = tuple(Rental(**one) for one in content.get("rentals") or ())
        if not rentals:
            return None
        devices = {device.name: at for at, device in enumerate(problem.cluster.devices)}
        terms = {name: RentalTerms(*pair) for name, pair in (content.get("rental_terms") or {}).items()}
        rental_of = {}
        for task, start_s in enumerate(content["start_s"]):
            on = [r for r, one in enumerate(rentals) if devices[one.node] == plan.assignment[task]]
            if on:
                rental_of[task] = max(on, key=lambda r: (rentals[r].start_s <= start_s + 1e-9, rentals[r].start_s))
        return RentedNodes(rentals, terms, tuple(content.get("ready_s") or ()), rental_of, devices)

    def begin(self, done: Collection[int]) -> RentedNodes:
        """Return the same nodes before a run in which some tasks need not run."""
        begun = replace(self, _left={}, _up=set())
        begun.skip(done)
        return begun

    def skip(self, done: Collection[int]) -> None:
        """Note all tasks that need not run: a node that waits for none of the others is released."""
        for rental in range(len(self.rentals)):
            self._left[rental] = {t for t, r in self.rental_of.items() if r == rental and t not in done}

    def follow(self, event: Event) -> list[Event]:
        """Return what an event of a task means for its node: that it must be up, or may be released."""
        if not isinstance(event, (TaskStarted, TaskFinished)) or event.task not in self.rental_of:
            return []
        rental = self.rental_of[event.task]
        device = self.devices[self.rentals[rental].node]
        found: list[Event] = []
        if rental not in self._up:
            self._up.add(rental)
            found.append(DeviceJoined(device, event.at_s if isinstance(event, TaskStarted) else event.start_s))
        if isinstance(event, TaskStarted):
            self._left[rental].add(event.task)  # again, where its output was lost
        else:
            self._left[rental].discard(event.task)
            if not self._left[rental]:
                self._up.discard(rental)
                found.append(DeviceLost(device, event.at_s, _RELEASED, is_data_safe=True))
        return found

    def actual(self, result: RunResult, time_scale: float) -> tuple[Rental, ...]:
        """Return the rentals by the times of a run, in seconds of the plan where tasks only passed time."""
        scale = time_scale if result.is_timed and time_scale > 0 else 1.0
        found = []
        for r, planned in enumerate(self.rentals):
            tasks = [t for t, rental in self.rental_of.items() if rental == r and result.is_finished[t]]
            if not tasks:
                continue
            begin, end = float(np.min(result.start_s[tasks])) / scale, float(np.max(result.end_s[tasks])) / scale
            terms = self.terms.get(planned.node, RentalTerms())
            paid = float(billed(end - begin, terms.billing_s, terms.minimum_s))
            lead = planned.start_s - planned.request_s
            found.append(
                replace(
                    planned,
                    request_s=max(0.0, begin - lead),
                    start_s=begin,
                    end_s=end,
                    billed_s=paid,
                    cost_usd=planned.price_usd_per_hour * paid / 3600.0,
                    num_tasks=len(tasks),
                )
            )
        return tuple(found)

    def notes(self, engine: str, *, is_timed: bool) -> tuple[str, ...]:
        """Say what of the nodes is simulated."""
        if engine in _REAL:
            return (
                "Rented nodes are those of their names in Slurm; Stretto neither requests nor releases instances. "
                "Costs are by the times of this run and the prices of the plan.",
            )
        waits = "their start-up takes the planned time" if is_timed else "their start-up is not waited for"
        return (
            f"Simulated: no instance was requested or paid. The rented nodes were slots on this engine; {waits}. "
            "Costs are what the times of this run would come to at the prices of the plan.",
        )


def wait_until_up(problem: Problem, plan: Plan, ready_s: Sequence[float]) -> Problem:
    """Return the problem whose tasks wait until their nodes are up."""
    if not len(ready_s) or not any(math.isfinite(s) and s > 0 for s in ready_s):
        return problem
    release = np.maximum(problem.arrays.release, np.asarray(ready_s, dtype=np.float64)[plan.assignment])
    return replace(problem, arrays=problem.arrays._replace(release=release))
