"""Plans on rented nodes: the placement against the simulator and a slow twin, bills by hand, and the reserve."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from rent_twin import ends_after_losses, place

from stretto.core.graph import TaskGraph
from stretto.core.plan import Plan
from stretto.core.pool import Pool, Spot
from stretto.core.schedule import Schedule
from stretto.errors import InvalidInput, UnknownName
from stretto.graphs.rental.billing import rental_cost, rentals
from stretto.graphs.rental.fleet import Fleet, Node
from stretto.graphs.rental.goal import RentalGoal
from stretto.graphs.rental.kernels.rent import path_levels, place_tasks
from stretto.graphs.rental.result import RentalPlan
from stretto.graphs.rental.search import rent
from stretto.graphs.simulator import simulate

OWN = Pool("own", 2)
CLOUD = Pool("cloud", 6, speed=1.5, price_usd_per_hour=3.6, provision_s=30.0, min_nodes=0)
MARKET = Spot(np.zeros(1), np.array([1.2]), np.array([0.2]), checkpoint_s=200.0)


def random_graph(seed: int, num_tasks: int = 30, *, cores: bool = False) -> TaskGraph:
    """Draw a graph with tasks of seconds to minutes; the last ones may need several cores."""
    rng = np.random.default_rng(seed)
    pairs = [(u, v) for v in range(num_tasks) for u in range(v) if rng.random() < 2.0 / num_tasks]
    seconds = rng.choice([1.0, 30.0, 200.0], num_tasks) * rng.uniform(0.5, 1.5, num_tasks)
    size = rng.choice([0.0, 1e9, 2e10], len(pairs))
    graph = TaskGraph.from_edges(seconds, [u for u, _ in pairs], [v for _, v in pairs], size)
    return replace(graph, cores=rng.integers(0, 4, num_tasks).astype(float)) if cores else graph


@pytest.mark.parametrize("procs", [1, 4])
@pytest.mark.parametrize("seed", range(6))
def test_placement_equals_its_twin_and_the_simulation_of_its_plan(procs: int, seed: int) -> None:
    graph = random_graph(seed, cores=procs > 1)
    spot = replace(CLOUD, name="market", num_nodes=2, spot=MARKET)
    pools = [replace(pool, procs_per_node=procs) for pool in (OWN, CLOUD, spot)]
    fleet = Fleet.of(pools, graph.num_tasks)
    problem = fleet.problem(graph)
    n, rng = graph.num_tasks, np.random.default_rng(seed)
    seconds = problem.arrays.duration.min(axis=1)
    above, below = np.empty(n), np.empty(n)
    path_levels(problem.arrays, seconds, above, below)
    order = np.lexsort((np.argsort(problem.arrays.topo), -(below + seconds))).astype(np.int32)
    due = rng.uniform(0.5, 4.0) * above.max() - below
    need = np.ones((n, 1)) if problem.packing is None else problem.packing.need
    allowed, may_spot = rng.random(len(fleet.nodes)) < 0.9, rng.random(n) < 0.5
    allowed[0] = True
    device, start, finish, exposed = np.zeros(n, np.int32), np.empty(n), np.empty(n), np.zeros(n, np.bool_)
    nodes = fleet.arrays(problem)
    cost = place_tasks(problem.arrays, nodes, need, order, due, allowed, may_spot, device, start, finish, exposed)
    twin = place(problem, fleet, need, order.tolist(), due, allowed, may_spot)
    assert device.tolist() == twin.device
    assert finish == pytest.approx(twin.finish)
    assert cost == pytest.approx(twin.cost)
    assert exposed.tolist() == twin.exposed
    plan = Plan(device, order[np.argsort(start[order], kind="stable")])
    arrays = problem.arrays._replace(release=fleet.ready_s[device])
    ran = simulate(replace(problem, arrays=arrays), plan, memory_limits=False)
    assert ran.start_s == pytest.approx(start)
    assert ran.finish_s == pytest.approx(finish)


def test_paths_are_the_longest() -> None:
    problem = Fleet.of([OWN], 4).problem(TaskGraph.from_edges([1.0, 2.0, 4.0, 8.0], [0, 0, 1, 2], [1, 2, 3, 3], 0.0))
    above, below = np.empty(4), np.empty(4)
    path_levels(problem.arrays, problem.graph.work_s, above, below)
    assert above.tolist() == [1.0, 3.0, 5.0, 13.0]
    assert below.tolist() == [12.0, 8.0, 8.0, 0.0]


def test_rentals_are_rounded_up_and_have_a_minimum() -> None:
    def cost(pool: Pool, used_s: float) -> tuple[float, float]:
        return rental_cost(Node("n", pool, "on-demand", 0.0), 100.0, 100.0 + used_s)

    assert cost(CLOUD, 10.0) == (60.0, pytest.approx(0.06))  # a minute at least, where the offer does not say
    assert cost(CLOUD, 90.2) == (91.0, pytest.approx(0.091))  # then by begun seconds
    assert cost(replace(CLOUD, minimum_s=0.0), 10.0) == (10.0, pytest.approx(0.01))
    assert cost(replace(CLOUD, billing_s=3600.0), 3601.0) == (7200.0, pytest.approx(7.2))


def test_a_spot_rental_is_paid_at_the_price_of_each_moment() -> None:
    market = Spot(np.array([0.0, 1000.0]), np.array([3.6, 7.2]), np.zeros(2))
    node = Node("n", replace(CLOUD, spot=market), "spot", 0.0)
    assert rental_cost(node, 900.0, 1100.0) == (200.0, pytest.approx(0.1 + 0.2))


@pytest.mark.parametrize(("size", "number"), [(0.0, 2), (8.0, 1)])
def test_an_idle_node_is_released_unless_it_holds_data_for_a_later_task(size: float, number: int) -> None:
    graph = TaskGraph.from_edges([100.0, 100.0], [0], [1], size)
    fleet = Fleet.of([replace(CLOUD, num_nodes=1)], 2)
    schedule = Schedule(np.zeros(2, np.int32), np.array([30.0, 1000.0]), np.array([130.0, 1100.0]), "sequence", "none")
    found = rentals(fleet.problem(graph), schedule, fleet)
    assert len(found) == number
    assert found[0].request_s == 0.0
    assert sum(one.billed_s for one in found) == (200.0 if number == 2 else 1070.0)
    assert found[-1].request_s == (970.0 if number == 2 else 0.0)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize(
    "goal",
    [RentalGoal(), RentalGoal("time"), RentalGoal("both"), RentalGoal("cost", 400.0), RentalGoal("time", 900.0, 0.5)],
)
def test_no_plan_is_behind_heft_on_the_owned_nodes(seed: int, goal: RentalGoal) -> None:
    graph = random_graph(seed)
    owned = rent(graph, [OWN], RentalGoal("time"))
    heft = next(one for one in owned if one.policy == "heft")
    best = RentalPlan(goal, tuple(rent(graph, [OWN, CLOUD], goal)))
    assert best.best.key(goal) <= heft.key(goal)
    assert best.cost_usd == pytest.approx(sum(one.cost_usd for one in best.rentals))


def test_a_deadline_costs_more_the_nearer_it_is_and_a_budget_is_kept() -> None:
    graph = random_graph(3, 60)
    free = rent(graph, [OWN, CLOUD], RentalGoal())[0]
    assert free.cost_usd == 0
    costs = []
    for share in (1.1, 0.6, 0.4):
        goal = RentalGoal("cost", share * free.makespan_s)
        found = RentalPlan(goal, tuple(rent(graph, [OWN, CLOUD], goal)))
        assert found.keeps_limits
        costs.append(found.cost_usd)
    assert 0 == costs[0] < costs[1] < costs[2]
    poor = RentalGoal("time", budget_usd=costs[1] / 2)
    found = RentalPlan(poor, tuple(rent(graph, [OWN, CLOUD], poor)))
    assert found.keeps_limits
    assert found.makespan_s < free.makespan_s


def test_the_reserve_outlasts_every_loss_of_spot_nodes() -> None:
    delays = []
    for seed in range(8):
        graph = random_graph(seed)
        pools = [replace(OWN, num_nodes=1), replace(CLOUD, spot=MARKET)]
        goal = RentalGoal("cost", 0.6 * rent(graph, pools[:1], RentalGoal())[0].makespan_s)
        found = RentalPlan(goal, tuple(rent(graph, pools, goal)))
        assert found.keeps_limits
        timely = [one for one in found.tried if goal.late_s(one.latest_s) == 0]
        risky = next(one for one in timely if one.reserve is not None)
        rng = np.random.default_rng(seed)
        ends = np.max([ends_after_losses(risky, rng.uniform(0, risky.makespan_s), rng) for _ in range(200)], axis=0)
        assert ends.max() <= risky.latest_s + 1e-6 <= goal.deadline_s + 1e-6
        delays.append(float(np.max(ends - risky.schedule.finish_s)))
        assert delays[-1] <= risky.reserve.total_s + 1e-6
    assert max(delays) > 100.0  # losses do delay tasks


def test_the_markets_of_a_pool_share_its_nodes() -> None:
    graph = TaskGraph.from_edges([600.0] * 12, [], [], 0.0)
    pool = replace(CLOUD, num_nodes=4, spot=MARKET)
    for goal in (RentalGoal("cost", 3000.0), RentalGoal("time", 4000.0)):
        for one in rent(graph, [replace(OWN, num_nodes=1), pool], goal):
            assert len({rental.node for rental in one.rentals}) <= 4


def test_a_task_that_no_loss_reaches_may_end_at_the_deadline() -> None:
    graph = TaskGraph.from_edges([600.0] * 6, [], [], 0.0)
    pool = replace(CLOUD, num_nodes=2, speed=1.0, spot=replace(MARKET, checkpoint_s=math.inf))
    goal = RentalGoal("cost", 2400.0)
    found = RentalPlan(goal, tuple(rent(graph, [replace(OWN, num_nodes=1), pool], goal)))
    assert found.makespan_s == 2400.0  # four on the owned node, two on spot with 30 s + 600 s in reserve
    assert {one.market for one in found.rentals} == {"spot"}
    assert found.best.latest_s == 2400.0


def test_words() -> None:
    chain = TaskGraph.from_edges([60.0] * 23, list(range(22)), list(range(1, 23)), 0.0)
    goal = RentalGoal("cost", 600.0)
    late = RentalPlan(goal, tuple(rent(chain, [Pool("own", 1)], goal)))
    assert late.verdict == ("takes 23.0 min; misses the 10 min deadline by 13.0 min",)
    assert not late.keeps_limits
    dear = RentalGoal("cost", budget_usd=1.0)
    found = RentalPlan(dear, tuple(rent(chain, [replace(CLOUD, speed=1.0)], dear)))
    assert found.verdict[-1] == "costs $1.38; exceeds the $1.00 budget by $0.38"
    assert found.rentals[0].request_s == 0.0
    assert found.rentals[0].start_s == 30.0
    assert any("assumed: per second, at least 60 s" in note for note in found.notes)


def test_what_an_offer_states_is_not_called_assumed() -> None:
    stated = replace(CLOUD, minimum_s=60.0)
    assert not any("Billing" in note for note in Fleet.of([OWN, stated], 3).notes)
    assert any("Links between nodes are assumed" in note for note in Fleet.of([OWN], 3).notes)
    patient = replace(CLOUD, idle_shutdown_s=300.0)
    assert any(note.startswith("idle_shutdown of cloud is not used") for note in Fleet.of([patient], 3).notes)


def test_refusals() -> None:
    with pytest.raises(InvalidInput, match="state the on-demand price"):
        Fleet.of([replace(CLOUD, price_usd_per_hour=0.0, spot=MARKET)], 3)
    with pytest.raises(UnknownName):
        RentalGoal("glory")
    with pytest.raises(InvalidInput, match="must be positive"):
        RentalGoal("cost", deadline_s=0.0)
    capped = replace(CLOUD, spot=replace(MARKET, bid_usd_per_hour=1.0))
    fleet = Fleet.of([capped], 3)
    assert {node.market for node in fleet.nodes} == {"on-demand"}
    assert any("above the bid of 1 USD/h" in note for note in fleet.notes)
    assert math.isinf(RentalGoal().deadline_s)
