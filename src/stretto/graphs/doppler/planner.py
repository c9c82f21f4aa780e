"""Policy-guided search: Doppler's policies and local search improve each other's plans."""

from __future__ import annotations

import itertools
import threading
import time
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING

from stretto.core import argument_checks as checks
from stretto.core.csr import Floats
from stretto.core.plan import DISCIPLINES, Discipline, Plan
from stretto.core.planner import Budget, Progress
from stretto.core.problem import Problem
from stretto.errors import InvalidInput, MissingExtra
from stretto.graphs.doppler.tuning import TUNED, SearchPhase
from stretto.graphs.kernels.search.decode import tails
from stretto.graphs.planners.listing import DevicePlanner
from stretto.graphs.planners.placing import devices_only
from stretto.graphs.search.annealing import Annealing, AnnealingChain, ConservingChain
from stretto.graphs.search.anytime import DEFAULT_TIME_LIMIT_S, OPTIMAL, Chain, SearchOutcome, Solution, run_chains
from stretto.graphs.search.lns import LargeNeighbourhood, RuinChain
from stretto.graphs.search.starts import floor_s, starting_points
from stretto.graphs.search.tabu import TabuChain, TabuSearch

if TYPE_CHECKING:
    from stretto.graphs.doppler.trainer import DopplerTrainer


@dataclass(frozen=True)
class DopplerPlanner(DevicePlanner):
    """Doppler's two policies with local search, each starting from what the other found.

    Both policies are trained on the problem (reinforcement with self-imitation, for fresh weights after imitation of
    look-ahead) while one core already searches from the best heuristic's plan. Then all cores polish the best plans of
    either, the result is imitated, and so on. The answer is never worse than the heuristics that it starts from.

    Parameters
    ----------
    discipline
        What the plan is for; ``work-conserving`` episodes and searches execute plans as such a runtime does.
    start
        ``scratch``, ``generalist``, or a checkpoint's file: the first weights of the policies. None takes
        the generalist if there is one.
    train_share
        The part of the first round in which policies are trained; a third of it in later ones. 0 leaves only search.
    rounds
        How often training and polishing take turns.
    max_evaluations
        Ends by so many plans tried, in episodes and searches, and not by the clock: then the answer repeats. Nothing
        searches beside the training.
    """

    discipline: Discipline = "sequence"
    start: str | None = None
    train_share: float = 0.3
    rounds: int = 2
    starts: tuple[str, ...] = ("heft", "peft", "lookahead")
    max_evaluations: int | None = None

    def __post_init__(self) -> None:
        if self.discipline not in DISCIPLINES:
            raise InvalidInput(f"{self.discipline!r} is not one of {', '.join(DISCIPLINES)}", field="discipline")
        if not 0 <= self.train_share < 1:
            raise InvalidInput(f"{self.train_share} is not in [0, 1)", field="train_share")
        checks.at_least(1, rounds=self.rounds)
        if self.max_evaluations is not None:
            checks.at_least(1, max_evaluations=self.max_evaluations)

    def supports(self, problem: Problem) -> str | None:
        return devices_only(problem)

    def plan(self, problem: Problem, budget: Budget) -> Plan:
        reason = self.supports(problem)
        if reason is not None:
            raise InvalidInput(reason, field="doppler")
        search = Search(problem, self, budget)
        try:
            search.run()
        except KeyboardInterrupt:
            search.is_interrupted = True
        finally:
            search.stop.set()
        return search.plan()


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
        self.phase = TUNED.seek
        self.is_untrained = False  # whether the policies start from fresh weights
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
            "evaluations": self.evaluations + self.episodes,
            "episodes": self.episodes,
            "interrupted": self.is_interrupted,
            "optimal": self.is_optimal,
        }
        return Plan(self.best.assignment, self.best.order, self.params.discipline, info)

    def run(self) -> None:
        """Take turns until the limit or a bound is met."""
        self._tell()  # the heuristics' plans are there; compiling the rest takes a while
        share = self.params.train_share
        problem = self.problem
        worth_it = share > 0 and (self.is_counted or self.limit >= TUNED.least_training_s)
        if not worth_it or problem.num_devices == 1 or not 1 < problem.num_tasks <= TUNED.most_tasks:
            self.seek(self.starts, 0.5 * self.limit)
            self.refine(self.limit)
            return
        training: DopplerTrainer | None = None
        for number in range(self.params.rounds):
            if self.is_optimal or self.is_interrupted:
                return
            begin = self.limit * number / self.params.rounds
            end = self.limit * (number + 1) / self.params.rounds
            turn = begin + share * (end - begin) / (1 if number == 0 else TUNED.later_training)
            is_last = 0 < number == self.params.rounds - 1
            training = self.train(training, turn, TUNED.refine if is_last else TUNED.seek)
            if is_last:
                self.refine(end)
            else:
                self.seek([self.best, *self.candidates(training)], end)

    def candidates(self, training: DopplerTrainer) -> list[Solution]:
        """Return the policy's best plans, best first."""
        return [Solution(e.makespan_s, e.assignment, e.order) for e in training.elites]

    # -- the two ways of looking ------------------------------------------------------------------------------

    def train(self, training: DopplerTrainer | None, until: float, phase: SearchPhase) -> DopplerTrainer:
        """Train for a while, with the other cores searching from the best plan."""
        with ThreadPoolExecutor(1) as pool:
            beside: Future[SearchOutcome] | None = None
            if self.threads > 1 and not self.is_counted:
                chains = self._chains([self.best, *self.starts], self.threads - 1, phase, until)
                beside = pool.submit(self._search, chains, until, False)
            try:
                if training is None:
                    training = self._new_training()
                for start in self._examples():
                    training.add_plan(start.order, start.assignment)
                while self.spent < until and not self.is_optimal:
                    if beside is not None and beside.done():  # early only when nothing is left to find
                        break
                    if self.is_untrained and training.episode < TUNED.imitated:
                        training.imitate("lookahead")
                    else:
                        training.reinforce()
                    self.episodes = training.episode
                    top = training.elites[0]
                    self._offer(Solution(top.makespan_s, top.assignment, top.order))
                    self._tell()
            except BaseException:
                self.stop.set()
                raise
            finally:
                if beside is not None:
                    self._take(beside.result())
        return training

    def _examples(self) -> list[Solution]:
        """Return plans to imitate: the best found so far; before any episode those of heuristics, for fresh weights."""
        if self.episodes > 0:
            return [self.best]
        return self.starts if self.is_untrained else []

    def seek(self, learned: list[Solution], until: float) -> None:
        """Search for a good region: from the policy's plans, from those of heuristics, and again in the better way."""
        step = (until - self.spent) / 3
        by_windows = self.polish(learned, self.spent + step, TUNED.seek)
        by_steps = self.polish(self.starts, self.spent + step, TUNED.wander)
        if by_steps.makespan_s < by_windows.makespan_s:
            self.phase = TUNED.wander
        self.polish((learned if self.phase is TUNED.seek else self.starts)[::-1], until, self.phase)

    def refine(self, until: float) -> None:
        """Warm up the best plan and cool it down, turn after turn; after some without gain, search another region."""
        step = TUNED.turn * self.limit
        base, num_idle = self.best, 0
        phases = itertools.cycle((TUNED.refine, TUNED.settle))
        while self.spent < until and not self.is_optimal and not self.is_interrupted:
            end = self.spent + step
            found = self.polish([base], until if end + 0.5 * step > until else end, next(phases))
            num_idle = 0 if found.makespan_s < base.makespan_s else num_idle + 1
            base = found
            if num_idle < TUNED.patience:
                continue
            num_idle, left = 0, until - self.spent
            base = self.polish(self.starts, self.spent + 0.6 * left, self.phase) if left > 4 * step else self.best

    def polish(self, starts: list[Solution], until: float, phase: SearchPhase) -> Solution:
        """Search on all cores, each from another of some plans; return the best that was found from these."""
        if self.is_optimal or self.is_interrupted or (self.is_counted and self.spent >= until):
            return starts[0]
        found = self._search(self._chains(starts, self.threads, phase, until), until, True)
        self._take(found)
        self.is_interrupted |= found.interrupted
        return found.best

    def _new_training(self) -> DopplerTrainer:
        try:
            from stretto.graphs.doppler.run import first_weights
            from stretto.graphs.doppler.settings import DopplerSettings
            from stretto.graphs.doppler.trainer import DopplerTrainer
        except ImportError as error:
            raise MissingExtra(str(error.name), "learn", "the planner doppler") from None
        settings = DopplerSettings()
        weights = first_weights(self.params.start, self.problem, settings)
        self.is_untrained = weights is None
        return DopplerTrainer(
            self.problem,
            settings,
            seed=self.budget.seed,
            discipline=self.params.discipline,
            num_threads=self.threads,
            params=weights,
        )

    def _chains(self, starts: list[Solution], num: int, phase: SearchPhase, until: float) -> list[Chain]:
        """Return chains of several kinds, which begin with different plans."""
        left = max(until - self.spent, 1e-3)
        most = max(num, int(left)) if self.is_counted else None
        budget = Budget(self.budget.seed, None if self.is_counted else left, num)
        chains: list[Chain] = []
        for i in range(num):
            self.streams += 1
            kind = phase.kinds[i % len(phase.kinds)]
            chains.append(self._chain(kind, starts[i % len(starts)], phase, most, budget))
        return chains

    def _chain(self, kind: str, start: Solution, phase: SearchPhase, most: int | None, budget: Budget) -> Chain:
        problem, tail, stream, hot, cold = self.problem, self.tail, self.streams, phase.hot, phase.cold
        if self.params.discipline == "work-conserving":
            conserving = Annealing(discipline="work-conserving", max_evaluations=most, hot=hot, cold=cold)
            return ConservingChain(problem, tail, start, conserving, budget, stream)
        if kind == "ruin" or (kind == "tabu" and problem.num_tasks > TUNED.most_tabu_tasks):
            return RuinChain(problem, tail, start, LargeNeighbourhood(most, hot=hot, cold=cold), budget, stream)
        if kind == "tabu":
            return TabuChain(problem, start, TabuSearch.patience, budget.seed, stream)
        return AnnealingChain(problem, tail, start, Annealing(max_evaluations=most, hot=hot, cold=cold), budget, stream)

    def _search(self, chains: list[Chain], until: float, is_told: bool) -> SearchOutcome:
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

    def _tell(self) -> None:
        if self.budget.on_progress is not None:
            made = self.evaluations + self.episodes
            self.budget.on_progress(Progress(self.elapsed_s, made, self.best.makespan_s))
