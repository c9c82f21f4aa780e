"""Simulated annealing over assignment and order."""

from __future__ import annotations

import time
from dataclasses import dataclass

from stretto.core.csr import Floats
from stretto.core.kernels.rng import seeded
from stretto.core.plan import DISCIPLINES, Discipline, Plan
from stretto.core.planner import Budget
from stretto.core.problem import Problem
from stretto.errors import InvalidInput
from stretto.graphs.kernels.search.anneal import AnnealState, anneal, load_state, mean_rise, new_state
from stretto.graphs.kernels.search.anneal_conserving import anneal_conserving, load_conserving
from stretto.graphs.kernels.search.decode import tails
from stretto.graphs.memory.limits import binding_needs
from stretto.graphs.search.anytime import DEFAULT_TIME_LIMIT_S, ROUNDS, Chain, KernelChain, Slice, Solution, run_chains
from stretto.graphs.search.project import ProjectChain, project_floor_s
from stretto.graphs.search.starts import SearchPlanner, floor_s, starting_points

#: Rounds at which the temperature rises again.
CYCLES = (0, ROUNDS // 6, ROUNDS // 2)
#: Proposals between looks at the clock: about this many task and read visits.
CHUNK_WORK = 2_000_000
#: A first guess at the cost of an evaluation, per task and read.
SECONDS_PER_ITEM = 4e-9


@dataclass(frozen=True)
class Annealing(SearchPlanner):
    """Simulated annealing with late-starting, early-ending evaluations (Kirkpatrick 1983).

    Moves shift a task in the order within its precedences, change its device, swap two devices, or
    take neighbours along; half of them aim at the critical path. Three cooling cycles, each
    from the best found so far on one chain and from the chain's own best on the others.

    Parameters
    ----------
    discipline
        What the plan is for: ``sequence`` may wait on purpose and is searched fastest;
        ``work-conserving`` executes every proposal the way such a runtime would.
    hot, cold
        First and last temperature of a cycle, in units of the mean rise: by how much a move that
        lengthens the starting plan does so on average.
    """

    discipline: Discipline = "sequence"
    hot: float = 0.5
    cold: float = 5e-4

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.discipline not in DISCIPLINES:
            raise InvalidInput(f"{self.discipline!r} is not one of {', '.join(DISCIPLINES)}", field="discipline")
        if not 0 < self.cold < self.hot:
            raise InvalidInput(f"cold={self.cold} must be positive and less than hot={self.hot}", field="annealing")

    def supports(self, problem: Problem) -> str | None:
        if problem.packing is not None and self.discipline != "sequence":
            return "on nodes that pack only discipline=sequence is searched"
        return None

    def plan(self, problem: Problem, budget: Budget) -> Plan:
        tail = tails(problem.arrays)
        streams = range(max(1, budget.num_threads))
        chains: list[Chain]
        resources = problem.graph.resources
        if resources is not None:
            chains = [ProjectChain(problem, resources, tail, budget.seed, stream) for stream in streams]
            floor = project_floor_s(problem, resources, tail)
        else:
            starts = starting_points(problem, self.starts, budget.seed)
            chain = self._chain(problem)
            chains = [chain(problem, tail, starts[stream % len(starts)], self, budget, stream) for stream in streams]
            floor = floor_s(problem, tail)
        found = run_chains(chains, budget, max_evaluations=self.max_evaluations, floor_s=floor)
        return found.plan("sequence" if resources is not None else self.discipline)

    def _chain(self, problem: Problem) -> type[AnnealingChain]:
        """Return the chain for what binds: memory, nodes, or neither."""
        if binding_needs(problem) is not None and self.discipline == "sequence":
            from stretto.graphs.search.limited import LimitedChain

            return LimitedChain
        if problem.packing is not None:
            from stretto.graphs.search.packed import PackedChain

            return PackedChain
        return AnnealingChain if self.discipline == "sequence" else ConservingChain


class AnnealingChain(KernelChain):
    """One chain: a state in compiled code, a temperature, a best."""

    #: Cost of one evaluation per task and read, relative to a decode that mostly stops early.
    cost = 1

    def __init__(
        self, problem: Problem, tail: Floats, start: Solution, params: Annealing, budget: Budget, stream: int
    ) -> None:
        self.problem, self.tail, self.params, self.stream = problem, tail, params, stream
        self.time_limit_s = budget.time_limit_s or DEFAULT_TIME_LIMIT_S
        self.num_chains = max(1, budget.num_threads)
        self.rng = seeded(budget.seed, stream)
        self.state: AnnealState = new_state(problem.num_tasks, problem.num_devices)
        self.best = Solution(start.makespan_s, start.assignment.copy(), start.order.copy())
        # Equal devices and free transfers: the order alone decides, devices follow from it.
        self.greedy = problem.is_free_to_move and problem.arrays.duration.shape[1] == 1
        self.evaluations = 0
        self.busy_s = 0.0
        self._load(self.best)
        self.best = Solution(self.value, self.state.assign.copy(), self.state.order.copy())
        self.rise = self._mean_rise()
        self._anneal(0, 1.0)  # compiles before the clock starts

    def _load(self, solution: Solution) -> None:
        self.value = load_state(self.problem.arrays, self.state, solution.assignment, solution.order, self.greedy)

    def meet(self, best: Solution, next_round: int) -> None:
        if next_round in CYCLES:
            self._load(best if self.stream == 0 else self.best)
            if self.value < self.best.makespan_s:
                self.best = Solution(self.value, self.state.assign.copy(), self.state.order.copy())

    def run(self, part: Slice) -> None:
        chunk = min(4096, max(16, CHUNK_WORK // self._size))
        begin = time.perf_counter()
        made = 0
        while not part.is_over(made, self.best.makespan_s):
            steps = min(chunk, part.evaluations - made)
            self._anneal(steps, self.temperature(part.rounds_done(made)))
            made += steps
            self.evaluations += steps
        self.busy_s += time.perf_counter() - begin

    @property
    def _size(self) -> int:
        return self.cost * (self.problem.num_tasks + len(self.problem.arrays.in_task))

    def temperature(self, rounds: float) -> float:
        """Return the temperature, falling from hot to cold in each cycle."""
        starts = [start for start in CYCLES if start <= rounds]
        begin = starts[-1]
        end = CYCLES[len(starts)] if len(starts) < len(CYCLES) else ROUNDS
        hot = max(self.params.hot * self._heat(), 2 * self.params.cold)
        return self.rise * float(hot * (self.params.cold / hot) ** ((rounds - begin) / (end - begin)))

    def _mean_rise(self) -> float:
        state = new_state(self.problem.num_tasks, self.problem.num_devices)
        value = load_state(self.problem.arrays, state, self.state.assign, self.state.order, self.greedy)
        samples = min(500, max(50, CHUNK_WORK // self._size))
        rise = mean_rise(self.problem.arrays, state, self.tail, self.rng, samples, self.greedy, value)
        return float(rise) or 0.02 * value

    def _heat(self) -> float:
        """Return how much of the full heat the budget can cool down again.

        A thousand proposals per task can; a big graph with little time must start colder, or
        it ends worse than the heuristic that it started from.
        """
        if self.params.max_evaluations is not None:
            expected = self.params.max_evaluations / self.num_chains
        elif self.busy_s > 0:
            expected = self.evaluations / self.busy_s * self.time_limit_s
        else:
            expected = self.time_limit_s / (self._size * SECONDS_PER_ITEM)
        return min(1.0, expected / (1000.0 * self.problem.num_tasks))

    def _anneal(self, steps: int, temperature: float) -> None:
        self._search(anneal, self.tail, self.rng, steps, temperature, self.greedy)


class ConservingChain(AnnealingChain):
    """A chain whose proposals are executed by the work-conserving event loop."""

    cost = 20

    def _load(self, solution: Solution) -> None:
        self.value = load_conserving(self.problem.arrays, self.state, solution.assignment, solution.order)

    def _anneal(self, steps: int, temperature: float) -> None:
        self._search(anneal_conserving, self.rng, steps, temperature)
