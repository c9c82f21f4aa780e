"""Plans on rented nodes: many are tried, the best by the goal is kept.

Two kinds are tried. A policy plans on the owned nodes alone and on these with some number of rented ones; so the result
is never behind that policy on the owned nodes. And tasks are placed one by one, each as cheaply as its due time allows
(``kernels/rent.py``): due times follow from a target for the whole, which is varied from as fast as possible to the
deadline, and so are the pools, the tasks that may run on spot, and, at random, due times and order.
"""

from __future__ import annotations

import itertools
import math
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stretto.core.csr import Floats, Ints
from stretto.core.graph import TaskGraph
from stretto.core.plan import Plan
from stretto.core.planner import Budget, Progress
from stretto.core.pool import Pool
from stretto.core.problem import Problem
from stretto.core.schedule import Schedule
from stretto.errors import Infeasible, InvalidInput, InvalidPlan
from stretto.graphs.evaluate import PolicyLike, Setting, planner_of, policy_name
from stretto.graphs.rental.billing import Rental, rentals
from stretto.graphs.rental.fleet import Fleet
from stretto.graphs.rental.goal import RentalGoal, Reserve, repeated_s, reserve_of
from stretto.graphs.rental.kernels.rent import path_levels, place_tasks

#: The policy whose plans come with those of the placement by cost.
DEFAULT_POLICY = "heft"
PLACEMENT = "placement by cost"
#: Targets for the whole, in longest paths.
_STRETCHES = (0.0, 1.0, 1.1, 1.25, 1.5, 1.8, 2.3, 3.0, 4.5, 7.0, 12.0, 25.0, math.inf)
#: Shares of the time before the deadline.
_SHARES = (0.8, 0.9, 0.97, 1.0)
#: Tasks that may run on spot: those up to these quantiles of the durations.
_SPOT_QUANTILES = (0.0, 0.5, 0.9, 1.0)
#: Random variations where no time limit is given, and what they may take in all, as tasks times nodes.
_NUM_CHANGES = 1000
_WORK = 1e8
_CHANGE = 0.15
#: Placements that are simulated.
_NUM_SIMULATED = 6
#: Sets of pools: all of so many, then single ones and all together.
_MOST_POOLS = 4
_Key = tuple[float, ...]


@dataclass(frozen=True, eq=False)
class RentedTrial:
    """A plan on rented nodes, simulated and billed."""

    policy: str
    fleet: Fleet
    problem: Problem
    plan: Plan
    schedule: Schedule
    rentals: tuple[Rental, ...]
    reserve: Reserve | None

    @property
    def makespan_s(self) -> float:
        return self.schedule.makespan_s

    @property
    def latest_s(self) -> float:
        """When it ends at the latest, if spot nodes are lost."""
        return self.makespan_s if self.reserve is None else self.reserve.latest_s

    @property
    def cost_usd(self) -> float:
        """The cost of the plan if it goes as planned."""
        return float(sum(one.cost_usd for one in self.rentals))

    @property
    def expected_usd(self) -> float:
        return self.cost_usd if self.reserve is None else self.reserve.expected_usd(self.cost_usd)

    def key(self, goal: RentalGoal) -> _Key:
        """Return what candidates are sorted by."""
        return goal.key(self.makespan_s, self.latest_s, self.expected_usd)


@dataclass(frozen=True, eq=False)
class _Try:
    """One placement: which nodes, which tasks on spot, due times and order."""

    allowed: NDArray[np.bool_]
    may_spot: NDArray[np.bool_]
    due: Floats
    order: Ints


def rent(
    graph: TaskGraph,
    pools: Sequence[Pool],
    goal: RentalGoal,
    policy: PolicyLike = DEFAULT_POLICY,
    *,
    params: Mapping[str, Any] | None = None,
    budget: Budget | None = None,
    setting: Setting | None = None,
    notes: Sequence[str] = (),
) -> list[RentedTrial]:
    """Return plans of a graph on pools, the best by the goal first; ``notes`` say what is assumed about the pools.

    Raises
    ------
    Infeasible
        A task fits no node of the pools.
    """
    if graph.resources is not None:
        raise InvalidInput(f"{graph.name!r} is a project with resources of its own; pools cannot run it", field="pools")
    budget, setting = budget or Budget(), setting or Setting()
    begin = time.perf_counter()
    fleet = Fleet.of(pools, graph.num_tasks, notes)
    problem = fleet.problem(graph)
    found = list(_planned(graph, fleet, policy, params, budget, setting))
    if policy_name(policy) == DEFAULT_POLICY:
        search = _Placement(problem, fleet, goal, budget, begin)
        for plan in search.best():
            found.append(_candidate(PLACEMENT, graph, fleet, problem, plan, setting))
    if not found:
        raise Infeasible(f"policy {policy_name(policy)!r} found no plan of {graph.name!r} on any choice of nodes")
    return sorted(found, key=lambda one: one.key(goal))


def _planned(
    graph: TaskGraph,
    fleet: Fleet,
    policy: PolicyLike,
    params: Mapping[str, Any] | None,
    budget: Budget,
    setting: Setting,
) -> Iterator[RentedTrial]:
    """Yield what a policy plans on the owned nodes, and on these with more and more nodes of each pool."""
    planner, choices = planner_of(policy, params), list(_node_choices(fleet))
    share = None if budget.time_limit_s is None else budget.time_limit_s / (2.0 * len(choices))
    refusals = []
    for places in choices:
        part = fleet.take(places)
        try:
            problem = part.problem(graph)
            reason = planner.supports(problem) if hasattr(planner, "supports") else None
            if reason is not None:
                refusals.append(reason)
                continue
            plan = planner.plan(problem, replace(budget, time_limit_s=share))
            yield _candidate(policy_name(policy), graph, part, problem, plan, setting)
        except (Infeasible, InvalidPlan) as error:
            refusals.append(str(error))
    if len(refusals) == len(choices) and policy_name(policy) != DEFAULT_POLICY:
        raise Infeasible(f"policy {policy_name(policy)!r} cannot plan {graph.name!r} on these pools: {refusals[0]}")


def _node_choices(fleet: Fleet) -> Iterator[list[int]]:
    """Yield sets of nodes: the owned ones, and these with 1, 2, 4 ... nodes of one pool and market."""
    owned = fleet.owned
    if owned:
        yield owned
    kinds: dict[tuple[str, str], list[int]] = {}
    for place, node in enumerate(fleet.nodes):
        if node.market != "owned":
            kinds.setdefault((node.pool.name, node.market), []).append(place)
    for places in kinds.values():
        number = 1
        while True:
            yield owned + places[:number]
            if number >= len(places):
                break
            number = min(2 * number, len(places))


def _candidate(
    policy: str, graph: TaskGraph, fleet: Fleet, problem: Problem, plan: Plan, setting: Setting
) -> RentedTrial:
    """Simulate and bill a plan on the nodes that it uses, and on all owned ones."""
    used = sorted(set(plan.assignment.tolist()) | set(fleet.owned))
    if len(used) < len(fleet.nodes):
        place = np.full(len(fleet.nodes), -1, dtype=np.int32)
        place[used] = np.arange(len(used), dtype=np.int32)
        fleet, plan = fleet.take(used), replace(plan, assignment=place[plan.assignment])
        problem = fleet.problem(graph)
    ready = np.maximum(problem.arrays.release, fleet.ready_s[plan.assignment])
    arrays = problem.arrays._replace(release=ready)
    schedule = setting.run(replace(problem, arrays=arrays), plan, record_transfers=True)
    rented = rentals(problem, schedule, fleet)
    reserve = reserve_of(problem, plan, schedule, fleet, rented)
    return RentedTrial(policy, fleet, problem, plan, schedule, tuple(rented), reserve)


class _Placement:
    """The search over placements by cost."""

    def __init__(self, problem: Problem, fleet: Fleet, goal: RentalGoal, budget: Budget, begin: float) -> None:
        self.problem, self.fleet, self.goal, self.budget, self.begin = problem, fleet, goal, budget, begin
        self.arrays = problem.arrays
        self.nodes = fleet.arrays(problem)
        n = problem.num_tasks
        self.need = np.ones((n, 1)) if problem.packing is None else problem.packing.need
        self.seconds = self.arrays.duration.min(axis=1)
        self.rng = np.random.default_rng(budget.seed)
        self.kept: list[tuple[_Key, _Try, tuple[Plan, Plan]]] = []
        self.spot_seconds = self._spot_seconds()
        markets = [node.pool.spot for node in fleet.nodes]
        self.hazard = np.array([0.0 if spot is None else float(spot.hazard_per_hour.max()) for spot in markets])
        self.on_demand_usd = np.array([node.pool.price_usd_per_hour for node in fleet.nodes])

    def best(self) -> list[Plan]:
        """Return the best placements by their own account."""
        for one in self._regular():
            self._try(one)
        number, work = 0, max(1.0, self.problem.num_tasks * len(self.fleet.nodes))
        try:
            while self.kept and self._goes_on(number, work):
                _, one, _ = self.kept[int(self.rng.integers(len(self.kept)))]
                self._try(self._changed(one))
                number += 1
        except KeyboardInterrupt:
            pass  # the best so far
        return [plan for _, _, plans in self.kept for plan in plans[: 1 if self.problem.packing is None else 2]]

    def _goes_on(self, number: int, work: float) -> bool:
        if self.budget.on_progress is not None and number % 20 == 0:
            elapsed = time.perf_counter() - self.begin
            self.budget.on_progress(Progress(elapsed, number, self.kept[0][0][3]))
        if self.budget.time_limit_s is not None:
            return time.perf_counter() - self.begin < self.budget.time_limit_s
        return number < _NUM_CHANGES and number * work < _WORK

    def _regular(self) -> Iterator[_Try]:
        """Yield placements for every set of pools, target, shape of due times, and limit of spot."""
        above, below = self._levels(self.seconds)
        order, longest = self._order(below + self.seconds), float(np.max(above + below))
        for allowed in self._node_sets():
            has_spot = bool(np.any(allowed & self.nodes.is_spot))
            for quantile in _SPOT_QUANTILES[1:] if has_spot else (0.0,):
                limit = float(np.quantile(self.spot_seconds, quantile)) if has_spot else 0.0
                may_spot = self.spot_seconds <= limit if has_spot else np.zeros(len(order), dtype=np.bool_)
                for target in self._targets(longest, self._reserve_s(allowed, may_spot)):
                    for due in self._dues(target, above, below):
                        yield _Try(allowed, may_spot, due, order)

    def _targets(self, longest: float, reserve_s: float) -> list[float]:
        targets = [stretch * longest for stretch in _STRETCHES if stretch > 0] + [0.0]
        if self.goal.deadline_s < math.inf:
            until = self.goal.deadline_s - reserve_s
            targets = [one for one in targets if one < until] + [share * until for share in _SHARES]
            targets += [self.goal.deadline_s] if reserve_s else []
        return targets

    @staticmethod
    def _dues(target: float, above: Floats, below: Floats) -> Iterator[Floats]:
        """Yield due times: as late as the path after a task allows, and in proportion to the path before it."""
        yield target - below
        if 0.0 < target < math.inf:
            yield target * above / np.maximum(above + below, 1e-300)

    def _try(self, one: _Try) -> None:
        n = self.problem.num_tasks
        device, start, finish = np.zeros(n, dtype=np.int32), np.empty(n), np.empty(n)
        exposed, inputs = np.zeros(n, dtype=np.bool_), (self.arrays, self.nodes, self.need, one.order, one.due)
        cost = place_tasks(*inputs, one.allowed, one.may_spot, device, start, finish, exposed)
        if not math.isfinite(cost):
            return
        reserve_s = self._reserve_s(one.allowed, self.nodes.is_spot[device])
        latest = finish + np.where(exposed, reserve_s, 0.0)
        cost += self._risk_usd(device, start, finish, reserve_s)
        key = self.goal.key(float(finish.max()), float(latest.max()), cost)
        if len(self.kept) == _NUM_SIMULATED and key >= self.kept[-1][0]:
            return
        if all(key != other for other, _, _ in self.kept):
            # As it was placed, and with tasks that start together in the order of their ends: nodes that pack differ.
            placed = Plan(device, one.order[np.argsort(start[one.order], kind="stable")])
            plans = (placed, Plan.from_times(device, start, finish, self.arrays.topo))
            self.kept = sorted([*self.kept, (key, one, plans)], key=lambda entry: entry[0])[:_NUM_SIMULATED]

    def _risk_usd(self, device: Ints, start: Floats, finish: Floats, reserve_s: float) -> float:
        """Return about what the loss of spot nodes adds to the cost that is to be expected."""
        on_spot = self.nodes.is_spot[device]
        if not bool(on_spot.any()):
            return 0.0
        first, last = np.full(len(self.fleet.nodes), np.inf), np.zeros(len(self.fleet.nodes))
        np.minimum.at(first, device[on_spot], start[on_spot])
        np.maximum.at(last, device[on_spot], finish[on_spot])
        hours = np.where(last > 0, last - np.minimum(first, last), 0.0) / 3600.0
        again = (hours + np.where(last > 0, reserve_s / 3600.0, 0.0)) @ self.on_demand_usd
        return float(again) * -math.expm1(-float(hours @ self.hazard))

    def _changed(self, one: _Try) -> _Try:
        """Return a placement with other due times and another order."""
        n = self.problem.num_tasks
        factor = float(np.exp(_CHANGE * self.rng.normal()))
        due = one.due * factor * np.exp(_CHANGE * self.rng.normal(size=n))
        seconds = self.seconds * np.exp(2 * _CHANGE * self.rng.normal(size=n))
        _, below = self._levels(seconds)
        return replace(one, due=due, order=self._order(below + seconds) if self.rng.random() < 0.5 else one.order)

    def _levels(self, seconds: Floats) -> tuple[Floats, Floats]:
        above, below = np.empty(len(seconds)), np.empty(len(seconds))
        path_levels(self.arrays, seconds, above, below)
        return above, below

    def _order(self, rank: Floats) -> Ints:
        """Return the tasks by the longest path from their start on; inputs come first."""
        position = np.empty(len(rank), dtype=np.int64)
        position[self.arrays.topo] = np.arange(len(rank))
        return np.lexsort((position, -rank)).astype(np.int32)

    def _node_sets(self) -> Iterator[NDArray[np.bool_]]:
        """Yield sets of pools: the owned ones always, with every set of few rented ones, or each and all of many."""
        names = [(node.pool.name, node.market) for node in self.fleet.nodes]
        rented = list(dict.fromkeys(name for name in names if name[1] != "owned"))
        if len(rented) <= _MOST_POOLS:
            sets = [some for size in range(len(rented) + 1) for some in itertools.combinations(rented, size)]
        else:
            sets = [(), *((one,) for one in rented), tuple(rented)]
        for some in sets:
            allowed = np.array([name[1] == "owned" or name in some for name in names])
            if bool(allowed.any()):
                yield allowed

    def _spot_seconds(self) -> Floats:
        """Return the longest that each task takes on a spot node."""
        spots = np.flatnonzero(self.nodes.is_spot)
        if not len(spots):
            return np.zeros(self.problem.num_tasks)
        seconds = self.arrays.duration[:, np.unique(self.arrays.device_class[spots])]
        return np.asarray(np.where(np.isfinite(seconds), seconds, 0.0).max(axis=1))

    def _reserve_s(self, allowed: NDArray[np.bool_], on_spot: NDArray[np.bool_]) -> float:
        """Return a reserve that is enough for these tasks on the spot nodes that are allowed."""
        spots = [
            node.pool for node, one in zip(self.fleet.nodes, allowed, strict=True) if one and node.market == "spot"
        ]
        if not spots or not bool(on_spot.any()):
            return 0.0
        seconds = self.spot_seconds[on_spot]
        again = max(repeated_s(seconds, pool.spot.checkpoint_s) for pool in spots if pool.spot is not None)
        return max(pool.provision_s for pool in spots) + again
