"""Policy-guided search: Doppler's policies and local search improve each other's plans."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

from stretto.core import argument_checks as checks
from stretto.core.cluster import Cluster
from stretto.core.csr import Floats
from stretto.core.graph import TaskGraph
from stretto.core.plan import DISCIPLINES, Discipline, Plan
from stretto.core.planner import Budget, Progress
from stretto.core.problem import Problem
from stretto.errors import InvalidInput
from stretto.files import checkpoint
from stretto.graphs.doppler.bandit import OperatorBandit
from stretto.graphs.doppler.evolution import PolicyChain
from stretto.graphs.doppler.generalist import load_network, load_policies
from stretto.graphs.doppler.limited import binds, improve_within
from stretto.graphs.doppler.linear import untrained_policies
from stretto.graphs.doppler.nodes import plan_nodes
from stretto.graphs.doppler.proposals import played, played_by_network
from stretto.graphs.doppler.tuning import EPISODES, TUNED, SearchPhase
from stretto.graphs.doppler.zero import lists_for, planned
from stretto.graphs.kernels.search.decode import tails
from stretto.graphs.planners.listing import DevicePlanner
from stretto.graphs.search.annealing import SECONDS_PER_ITEM, Annealing, AnnealingChain, ConservingChain
from stretto.graphs.search.anytime import DEFAULT_TIME_LIMIT_S, OPTIMAL, Chain, SearchOutcome, Solution, run_chains
from stretto.graphs.search.lns import LargeNeighbourhood, RuinChain
from stretto.graphs.search.paths import PathChain
from stretto.graphs.search.starts import floor_s, starting_points
from stretto.graphs.search.tabu import TabuChain, TabuSearch


@dataclass(frozen=True)
class DopplerPlanner(DevicePlanner):
    """Doppler's two policies and local search in turns, each starting from the best plan of the other.

    The search begins with the plans of heuristics and of the policies as they are. Then operators share the budget by
    what they gain per unit of it (a seeded bandit): windows, single steps, single tasks judged by longest paths, tabu
    search, and episodes, in which the policies' weights evolve on the problem. Searches continue from the best plan so
    far. The answer is never worse than the heuristics that it starts from.

    Parameters
    ----------
    discipline
        What the plan is for; ``work-conserving`` episodes and searches execute plans as such a runtime does.
    start
        First weights of the policies: ``generalist`` (also None), ``scratch`` for random ones, or a checkpoint's file.
        Networks of a checkpoint propose one plan; they do not evolve.
    train_share
        The part of the limit that episodes may take at most. 0 leaves only search.
    max_evaluations
        Ends by so many plans tried, in episodes and searches, and not by the clock: then the answer repeats.
    """

    discipline: Discipline = "sequence"
    start: str | None = None
    train_share: float = 0.3
    starts: tuple[str, ...] = ("heft", "peft", "lookahead")
    max_evaluations: int | None = None

    def __post_init__(self) -> None:
        if self.discipline not in DISCIPLINES:
            raise InvalidInput(f"{self.discipline!r} is not one of {', '.join(DISCIPLINES)}", field="discipline")
        if not 0 <= self.train_share < 1:
            raise InvalidInput(f"{self.train_share} is not in [0, 1)", field="train_share")
        if self.max_evaluations is not None:
            checks.at_least(1, max_evaluations=self.max_evaluations)

    def supports(self, problem: Problem) -> str | None:
        if problem.packing is not None and self.discipline != "sequence":
            return "on nodes that pack only discipline=sequence is searched"
        return super().supports(problem)

    def plan(self, problem: Problem, budget: Budget) -> Plan:
        reason = self.supports(problem)
        if reason is not None:
            raise InvalidInput(reason, field="doppler")
        if problem.packing is not None:
            moves = self.max_evaluations
            limit_s = budget.time_limit_s or (DEFAULT_TIME_LIMIT_S if moves is None else None)
            return plan_nodes(problem, problem.packing, replace(budget, time_limit_s=limit_s), self.plan, moves)
        if budget.time_limit_s is not None:
            _compile_operators()
        search = Search(problem, self, budget)
        if binds(problem):
            return self._plan_within(problem, search)
        try:
            search.run()
        except KeyboardInterrupt:
            search.is_interrupted = True
        finally:
            search.stop.set()
        return search.plan()

    def _plan_within(self, problem: Problem, search: Search) -> Plan:
        """Plan where memory limits bind: the policies' masks count bytes, and plans count only where they run."""
        search._propose()
        listed = [found[1] for name in lists_for(problem) if (found := planned(problem, name, search.budget.seed))]
        own = played(problem, load_policies())
        starts = [Plan(one.assignment, one.order, self.discipline) for one in (own, *search.starts, *listed)]
        limit_s = None if search.is_counted else search.limit
        budget = replace(search.budget, time_limit_s=limit_s)
        return improve_within(problem, starts, self.discipline, budget, self.max_evaluations)


class Search:
    """One run of the planner: the best plan so far, and what looks for a better one."""

    def __init__(self, problem: Problem, params: DopplerPlanner, budget: Budget) -> None:
        self.problem, self.params, self.budget = problem, params, budget
        self.begin = time.perf_counter()
        self.is_counted = params.max_evaluations is not None
        #: In seconds, or in plans tried.
        self.limit = float(params.max_evaluations or budget.time_limit_s or DEFAULT_TIME_LIMIT_S)
        self.tail: Floats = tails(problem.arrays)
        self.floor_s = floor_s(problem, self.tail)
        self.threads = max(1, budget.num_threads)
        self.evaluations = 0
        self.episodes = 0
        self.streams = 0
        self.starts = starting_points(problem, params.starts, budget.seed)
        if params.discipline == "work-conserving":
            # Heuristics are judged in sequence; a chain executes its start as the runtime will.
            executed = [self._chains([start], 1, TUNED.seek, self.limit)[0].best for start in self.starts]
            self.starts = sorted(executed, key=lambda solution: solution.makespan_s)
        self.best = self.starts[0]
        self.phases = list(TUNED.regions)  # the best first
        self.bandit = OperatorBandit(self._operators(), budget.seed, TUNED.explore, TUNED.memory)
        self.policies: Floats = self._first_policies()
        self.learners: list[PolicyChain] = []  # one for each core, made when first asked for
        self.learned = 0.0  # what of the limit episodes have taken
        self.is_interrupted = False
        self.stop = threading.Event()

    @property
    def elapsed_s(self) -> float:
        return time.perf_counter() - self.begin

    @property
    def spent(self) -> float:
        """What of the limit is used up."""
        return float(self.evaluations + self.episodes) if self.is_counted else self.elapsed_s

    @property
    def is_optimal(self) -> bool:
        return self.params.discipline == "sequence" and self.best.makespan_s <= self.floor_s * OPTIMAL

    def plan(self) -> Plan:
        """Return the best plan so far."""
        info: dict[str, object] = {
            "turns": self.bandit.shares(),
            "evaluations": self.evaluations + self.episodes,
            "episodes": self.episodes,
            "interrupted": self.is_interrupted,
            "optimal": self.is_optimal,
        }
        return Plan(self.best.assignment, self.best.order, self.params.discipline, info)

    def run(self) -> None:
        """Look for a region where there is time to warm up, then let the operators share what is left."""
        self._tell()  # the heuristics' plans are there; compiling the rest takes a while
        self._propose()
        if EPISODES in self.bandit.shares():
            self.learn(TUNED.learn_first * self.limit)
        if self.decodings_per_task >= TUNED.roomy:
            self.seek(self.starts, TUNED.seek_share * self.limit)
        self.share(self.limit)

    @property
    def decodings_per_task(self) -> float:
        """How many plans the limit allows to decode, per task."""
        problem = self.problem
        work = SECONDS_PER_ITEM * (problem.num_tasks + len(problem.arrays.in_task))
        return (self.limit if self.is_counted else self.limit / work) / problem.num_tasks

    def _operators(self) -> tuple[str, ...]:
        """Return the operators that share the budget."""
        searches = tuple(TUNED.operators)
        if self.params.discipline == "work-conserving":
            searches = ("windows", "steps")  # one kind of chain, at two temperatures
        can_learn = self.problem.num_devices > 1 and self.problem.num_tasks > 1 and self.params.train_share > 0
        return (*searches, EPISODES) if can_learn and not self.is_short else searches

    @property
    def is_short(self) -> bool:
        return self.is_counted and self.limit < TUNED.least_proposing

    def _first_policies(self) -> Floats:
        start = self.params.start
        if start == "scratch":
            return untrained_policies(self.budget.seed, max(1, self.threads))
        return (
            load_policies() if start in (None, "generalist") or _holds_networks(start) else load_policies(Path(start))
        )

    def _propose(self) -> None:
        """Put the plans of the policies as they are among the starts."""
        if self.problem.num_devices == 1 or self.is_short:
            return
        start, discipline = self.params.start, self.params.discipline
        own = [played(self.problem, self.policies, discipline)]
        if start is not None and _holds_networks(start):
            own.append(played_by_network(self.problem, load_network(Path(start)), discipline))
        self.episodes += len(self.policies) + len(own) - 1
        self.starts = sorted([*self.starts, *own], key=lambda solution: solution.makespan_s)
        self._offer(self.starts[0])

    # -- the two ways of looking ------------------------------------------------------------------------------

    def learn(self, until: float) -> None:
        """Let policies evolve on all cores."""
        if self.is_optimal:
            return
        begin = self.spent
        chains = [self._learner(number, self.best) for number in range(self.threads)]
        found = self._search(chains, until, True)
        self._take(found)
        self._count_episodes(chains)
        self.is_interrupted |= found.interrupted
        self.learned += self.spent - begin
        if found.best.makespan_s < self.starts[0].makespan_s:
            self.starts = [found.best, *self.starts]

    def _learner(self, number: int, base: Solution) -> PolicyChain:
        """Return one of the chains whose policies learn, ready for a turn."""
        while len(self.learners) <= number:
            discipline, seed, stream = self.params.discipline, self.budget.seed, len(self.learners)
            self.learners.append(PolicyChain(self.problem, base, self.policies, discipline, seed, stream))
        return self.learners[number].begin(base)

    def seek(self, starts: list[Solution], until: float) -> None:
        """Look for a good region in three ways for a short while each, then in the best of them."""
        step = TUNED.probe * (until - self.spent)
        found = [
            (self.polish(starts, self.spent + step, phase).makespan_s, number)
            for number, phase in enumerate(TUNED.regions)
        ]
        self.phases = [TUNED.regions[number] for _, number in sorted(found)]
        self.polish(starts, until, self.phases[0])

    def share(self, until: float) -> None:
        """Improve the best plan, turn after turn, by operators that gain; after some without gain, leave the region."""
        step = TUNED.turn * self.limit
        base, num_idle = self.best, 0
        while self.spent < until and not self.is_optimal and not self.is_interrupted:
            end = self.spent + step
            end = until if end + 0.5 * step > until else end
            found = self._take_turn(base, end)
            num_idle = 0 if found.makespan_s < base.makespan_s else num_idle + 1
            base = found
            if num_idle < TUNED.patience:
                continue
            num_idle, left = 0, until - self.spent
            is_long = self.decodings_per_task >= TUNED.roomy and left > 4 * step
            base = self.polish(self.starts, self.spent + 0.6 * left, self.phases[0]) if is_long else self.best
            self.phases.append(self.phases.pop(0))

    def _take_turn(self, base: Solution, until: float) -> Solution:
        """Run the operators that the bandit chooses, one on each core; return the best of their plans and the base."""
        if self.learned > self.params.train_share * self.limit:
            self.bandit.drop(EPISODES)
        names = self.bandit.choose(self.threads)
        begin = self.spent
        chains = [
            self._learner(0, base) if name == EPISODES else self._chain(TUNED.operators[name], base, until, len(names))
            for name in names
        ]
        found = self._search(chains, until, True)
        self._take(found)
        self.is_interrupted |= found.interrupted
        for name, chain in zip(names, chains, strict=True):
            self.bandit.credit(name, 1 - chain.best.makespan_s / base.makespan_s, self.spent - begin)
        if EPISODES in names:
            self._count_episodes([chain for chain in chains if isinstance(chain, PolicyChain)])
            self.learned += (self.spent - begin) / len(names)
        return min(base, found.best, key=lambda solution: solution.makespan_s)

    def polish(self, starts: list[Solution], until: float, phase: SearchPhase) -> Solution:
        """Search on all cores, each from another of some plans; return the best that was found from these."""
        if self.is_optimal or self.is_interrupted or (self.is_counted and self.spent >= until):
            return starts[0]
        found = self._search(self._chains(starts, self.threads, phase, until), until, True)
        self._take(found)
        self.is_interrupted |= found.interrupted
        return found.best

    def _chains(self, starts: list[Solution], num: int, phase: SearchPhase, until: float) -> list[Chain]:
        """Return chains of one kind, which begin with different plans."""
        return [self._chain(phase, starts[i % len(starts)], until, num) for i in range(num)]

    def _chain(self, phase: SearchPhase, start: Solution, until: float, num: int) -> Chain:
        """Return one of ``num`` chains that search side by side."""
        self.streams += 1
        left = max(until - self.spent, 1e-3)
        most = max(num, int(left)) if self.is_counted else None
        budget = Budget(self.budget.seed, None if self.is_counted else left, num)
        kind, problem, tail, stream = phase.kind, self.problem, self.tail, self.streams
        warmth = {"max_evaluations": most, "hot": phase.hot, "cold": phase.cold}
        if self.params.discipline == "work-conserving":
            return ConservingChain(problem, tail, start, _cooling("work-conserving", warmth), budget, stream)
        if kind == "ruin":
            windows = LargeNeighbourhood(most, hot=phase.hot, cold=phase.cold)
            return RuinChain(problem, tail, start, windows, budget, stream)
        if kind == "tabu":
            return TabuChain(problem, start, TabuSearch.patience, budget.seed, stream)
        chain = PathChain if kind == "paths" else AnnealingChain
        return chain(problem, tail, start, _cooling("sequence", warmth), budget, stream)

    def _search(self, chains: Sequence[Chain], until: float, is_told: bool) -> SearchOutcome:
        left = max(until - self.spent, 1e-3)
        before = self.evaluations

        def listen(news: Progress) -> None:
            if self.stop.is_set():
                raise KeyboardInterrupt
            if is_told and self.budget.on_progress is not None:
                best_s = min(news.best_makespan_s, self.best.makespan_s)
                made = before + news.evaluations + self.episodes
                self.budget.on_progress(Progress(self.elapsed_s, made, best_s))

        most = max(len(chains), int(left)) if self.is_counted else None
        budget = Budget(self.budget.seed, None if self.is_counted else left, len(chains), listen)
        return run_chains(chains, budget, max_evaluations=most, floor_s=self.floor_s)

    # -- bookkeeping ------------------------------------------------------------------------------------------

    def _offer(self, found: Solution) -> None:
        if found.makespan_s < self.best.makespan_s:
            self.best = Solution(found.makespan_s, found.assignment.copy(), found.order.copy())

    def _take(self, found: SearchOutcome) -> None:
        self.evaluations += found.evaluations
        self._offer(found.best)

    def _count_episodes(self, chains: Sequence[PolicyChain]) -> None:
        """Tell episodes from the other plans that were tried."""
        made = sum(chain.evaluations for chain in chains)
        self.evaluations, self.episodes = self.evaluations - made, self.episodes + made

    def _tell(self) -> None:
        if self.budget.on_progress is not None:
            made = self.evaluations + self.episodes
            self.budget.on_progress(Progress(self.elapsed_s, made, self.best.makespan_s))


@cache
def _compile_operators() -> None:
    """Run every operator but training on a tiny problem, so that compiling is not taken for a slow operator."""
    tiny = Problem.of(TaskGraph.from_edges([1.0, 1.0, 1.0], [0, 0], [1, 2], 1.0), Cluster.parse("cpu:2"))
    search = Search(tiny, DopplerPlanner(), Budget(time_limit_s=1.0, num_threads=1))
    search._propose()
    for phase in TUNED.operators.values():
        search._chain(phase, search.best, 1.0, 1)


@cache
def _holds_networks(start: str) -> bool:
    """Say whether a start names a checkpoint of networks, not of linear policies."""
    return start not in ("scratch", "generalist") and "policies" not in checkpoint.load(start)[0]


def _cooling(discipline: Discipline, warmth: Mapping[str, Any]) -> Annealing:
    return Annealing(discipline=discipline, **warmth)
