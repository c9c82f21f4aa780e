"""Replay a trace with MARS: at every epoch, follow the candidate that the selector trusts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from dataclasses import asdict, dataclass, replace

import numpy as np
from numpy.typing import NDArray

from stretto.core.csr import Floats
from stretto.core.trace import QueueArrays, Trace
from stretto.errors import InvalidInput
from stretto.queues.mars.candidates import candidates_of, penalized_of, variants_of
from stretto.queues.mars.cost import USUAL, JobCost
from stretto.queues.mars.counterfactual import CounterfactualReplays
from stretto.queues.mars.evidence import is_new_workload
from stretto.queues.mars.forecaster import shipped
from stretto.queues.mars.kernels.forecast import Forecaster, chains_of
from stretto.queues.mars.kernels.run import advance, state_along, take_over
from stretto.queues.mars.network import TRAINED, MarsNet, load_nets
from stretto.queues.mars.parameters import MARS_PARAMETERS as P
from stretto.queues.mars.parameters import Selection
from stretto.queues.mars.run_record import ChoiceRecorder
from stretto.queues.mars.selector import Choice, EpochComparison, Selector
from stretto.queues.portfolio import kinds_of
from stretto.queues.result import Watch
from stretto.runlog import Run

#: Is given the jobs so far, with guesses for what has not ended, and how many have been replayed.
Learner = Callable[[QueueArrays, int], MarsNet | None]
#: The name of what a learner made, the last of the candidates.
LEARNED = "learned"
#: Files of older versions also hold the networks of an ensemble, which was never followed.
_FORMER_ENSEMBLE = "net-"


@dataclass(frozen=True)
class MarsSettings:
    """The choices of the operator; all of them have a default.

    Attributes
    ----------
    nets
        A file of trained networks, as ``stretto train mars --save`` writes it; none by default.
    default
        The order or network that is followed unless another one is surely better.
    learns
        Whether a network is trained during the replay, from what has ended.
    """

    nets: str | None = None
    default: str | None = None
    cost: JobCost = USUAL
    learns: bool = False

    def candidates(self, *, starts_jobs: bool = True) -> list[MarsNet]:
        """Return what is chosen from, the default first.

        Parameters
        ----------
        starts_jobs
            Whether jobs can be held back; where they cannot, a trained network is asked for its order only.
        """
        nets = [] if self.nets is None else _read(self.nets)
        if self.nets is None and self.default == TRAINED:
            message = f"{TRAINED!r} is in the file that stretto train mars --save wrote; name it with --nets FILE"
            raise InvalidInput(message, field="default")
        if self.learns and any(net.name == LEARNED for net in nets):
            message = f"holds a network {LEARNED!r}, the name of what --learn trains; rename it, or leave --learn out"
            raise InvalidInput(message, source=self.nets, field="nets")
        if not starts_jobs:
            nets = [replace(net, net=net.net._replace(reserve=np.zeros(1))) for net in nets]
        return candidates_of(default=self.default, nets=nets, starts_jobs=starts_jobs)

    def spec(self) -> dict[str, object]:
        """Return what is not the default, flat and by name."""
        told = {"nets": self.nets, "default": self.default, **asdict(self.cost), "learns": self.learns}
        usual = {"nets": None, "default": None, **asdict(USUAL), "learns": False}
        return {name: value for name, value in told.items() if value != usual[name]}


def _read(path: str) -> list[MarsNet]:
    try:
        return [net for net in load_nets(path)[0] if not net.name.startswith(_FORMER_ENSEMBLE)]
    except InvalidInput as error:
        raise error.at(path) from None
    except (KeyError, TypeError):
        raise InvalidInput("does not name the networks that it holds", source=path, field="nets") from None


@dataclass(frozen=True, eq=False)
class MarsReplay:
    """What MARS did with a trace.

    Attributes
    ----------
    trace
        The jobs that were replayed, the first submitted at zero, with the estimates that were used.
    chosen
        Per job, the index in ``candidates`` of what was followed when it arrived.
    choices
        One per epoch, with the estimates behind it.
    cost
        What was compared.
    num_unplayed
        Jobs that had not arrived when the replay was stopped; they are not in ``trace``.
    """

    trace: Trace
    candidates: tuple[str, ...]
    start_s: Floats  # [n]
    chosen: NDArray[np.int64]  # [n]
    choices: tuple[Choice, ...]
    num_dropped: int
    cost: JobCost = USUAL
    num_unplayed: int = 0


def play_mars(
    trace: Trace,
    num_procs: int,
    *,
    settings: MarsSettings | None = None,
    run: Run | None = None,
    watch: Watch | None = None,
    seed: int = 0,
) -> MarsReplay:
    """Replay a trace with the settings of an operator; the other parameters are those of :func:`mars_replay`."""
    said = settings if settings is not None else MarsSettings()
    learner = None
    if said.learns:
        from stretto.queues.mars.online_learning import OnlineLearner

        learner = OnlineLearner(num_procs, seed=seed, measure=said.cost.measure)
    return mars_replay(
        trace,
        num_procs,
        candidates=said.candidates(),
        cost=said.cost,
        learner=learner,
        run=run,
        watch=watch,
        seed=seed,
    )


def mars_replay(
    trace: Trace,
    num_procs: int,
    *,
    candidates: Sequence[MarsNet] | None = None,
    selection: Selection | None = None,
    cost: JobCost = USUAL,
    learner: Learner | None = None,
    forecaster: Forecaster | None = None,
    run: Run | None = None,
    watch: Watch | None = None,
    seed: int = 0,
    num_threads: int = 2,
) -> MarsReplay:
    """Replay a trace under EASY with user estimates, following at each epoch the candidate that the selector trusts.

    Parameters
    ----------
    candidates
        The first is the operator's default; by default those of :func:`candidates_of`.
    cost
        What is minimized.
    learner
        Asked at every epoch for a better network, which becomes the candidate ``learned``.
    forecaster
        What candidates with foresight use; by default the one that comes with Stretto.
    run
        Where choices and rewards (minus what an ended job cost) are recorded during the replay.
    watch
        Told at every epoch how many jobs of how many have arrived. Where it returns False, the replay ends there: the
        jobs that have arrived are replayed to their ends, and only they are in the result.
    seed
        For guesses of run times in counterfactual replays.
    """
    if trace.parent is not None and len(trace.parent):
        raise InvalidInput("MARS replays jobs without dependencies only", field="dependencies")
    kept, num_dropped = trace.fitting(num_procs)
    nets = list(candidates if candidates is not None else candidates_of())
    if learner is not None:
        nets.append(replace(nets[0], name=LEARNED))  # until something has been learned, the default once more
    names = [net.name for net in nets]
    selector = Selector(names, penalized_of(names), selection or Selection(), variants_of(names))
    replayed = EpochReplay(kept.arrays(), num_procs, nets, selector, cost, forecaster or shipped(), seed=seed)
    replayed.learner = learner
    replayed.recorder = None if run is None else ChoiceRecorder(run, names[0], cost)
    with ThreadPoolExecutor(num_threads) as executor:
        num_played = replayed.play(executor, watch)
    part = kept if num_played == kept.num_jobs else kept.window(0, num_played)
    return MarsReplay(
        part,
        tuple(names),
        replayed.start[:num_played],
        replayed.chosen[:num_played],
        tuple(replayed.choices),
        num_dropped,
        cost,
        kept.num_jobs - num_played,
    )


class EpochReplay:
    """One replay, from epoch to epoch.

    Attributes
    ----------
    start
        When each job started; negative before; [n].
    chosen
        The candidate that was followed when each arrived; [n].
    choices
        One per epoch.
    learner, recorder
        Asked for a better network, and told of choices and rewards, at every epoch.
    """

    learner: Learner | None = None
    recorder: ChoiceRecorder | None = None

    def __init__(
        self,
        jobs: QueueArrays,
        num_procs: int,
        nets: list[MarsNet],
        selector: Selector,
        cost: JobCost,
        forecaster: Forecaster,
        *,
        seed: int = 0,
    ) -> None:
        n = len(jobs.submit)
        self._jobs, self._num_procs, self._nets = jobs, num_procs, nets
        self._selector = selector
        self._kinds = kinds_of(jobs)
        chains = chains_of(jobs)
        self._replays = CounterfactualReplays(jobs, self._kinds, num_procs, nets, forecaster, cost, chains, seed)
        most_hidden = max(net.num_hidden for net in nets)
        shape = (int(self._kinds.max()) + 1, num_procs, most_hidden)
        self._state = state_along(jobs, chains, *shape, forecaster, np.ones(n, np.bool_))
        memory = selector.rules.memory_jobs
        age = np.arange(min(n, P.whole_memory * memory) - 1, -1, -1)
        self._fade = np.exp(-age / memory)  # what jobs count, the latest last
        self._num_settled = 0  # jobs that had arrived when the workload was last taken for another one
        self.start = np.full(n, -1.0)
        self.chosen = np.zeros(n, np.int64)
        self.choices: list[Choice] = []

    def play(self, executor: Executor, watch: Watch | None = None) -> int:
        """Replay all jobs, and choose anew at every epoch; return how many have been replayed."""
        n, selector = len(self.start), self._selector
        for done in range(0, n, selector.rules.epoch_jobs):
            until = min(done + selector.rules.epoch_jobs, n)
            self.chosen[done:until] = selector.chosen
            net = self._nets[selector.chosen].net
            last = until if until < n else n + 1
            advance(self._jobs, self._kinds, self._num_procs, net, self._state, last, self.start)
            if watch is not None and not watch(until, n) and until < n:
                return self._finish(until)
            if until < n:
                self._reconsider(until, executor)
        if self.recorder is not None:
            self.recorder.rest(self._jobs, self.start)
        return n

    def _finish(self, num_arrived: int) -> int:
        """Replay the jobs that have arrived to their ends, as if no other came."""
        jobs = self._jobs._replace(
            **{
                name: column[:num_arrived]
                for name, column in self._jobs._asdict().items()
                if len(column) >= num_arrived
            }
        )
        net, kinds = self._nets[self._selector.chosen].net, self._kinds[:num_arrived]
        advance(jobs, kinds, self._num_procs, net, self._state, num_arrived + 1, self.start[:num_arrived])
        if self.recorder is not None:
            self.recorder.rest(jobs, self.start[:num_arrived])
        return num_arrived

    def _reconsider(self, done: int, executor: Executor) -> None:
        """Continue the counterfactual replays as far as possible, compare, and let what is chosen take over."""
        selector, replays = self._selector, self._replays
        now = float(self._jobs.submit[done - 1])
        replays.learn(self.start, done, now)
        played = min(done - selector.rules.lag_jobs, replays.num_playable)
        if played <= selector.since:
            return
        is_taught = self._learn(done, played)
        replays.play(played, executor)
        before = selector.chosen
        seen = self._compare(done, played, now, executor)
        choice = selector.choose(seen)
        for k in selector.hopeless(seen.cost, played):
            replays.drop(k)
        self.choices.append(choice)
        if self.recorder is not None:
            self.recorder.epoch(choice, selector, self._jobs, self.start, now)
        if selector.chosen != before or (is_taught and selector.chosen == len(self._nets) - 1):
            net = self._nets[selector.chosen].net
            take_over(self._jobs, self._kinds, self._num_procs, net, self._state, now, self.start)

    def _learn(self, done: int, played: int) -> bool:
        """Ask for a better network; say whether there is one."""
        taught = self.learner(self._replays.jobs, played) if self.learner is not None else None
        if taught is None:
            return False
        self._nets[-1] = taught
        self._replays.replace(len(self._nets) - 1, taught)
        if self.recorder is not None:
            self.recorder.learned(taught, done)
        return True

    def _compare(self, done: int, played: int, now: float, executor: Executor) -> EpochComparison:
        """Return what all candidates have cost, and what the real queue has."""
        selector, replays, rules = self._selector, self._replays, self._selector.rules
        reached = float(self._jobs.submit[played - 1])
        first = max(selector.since, played - P.whole_memory * rules.memory_jobs)
        span = (first, played, reached)
        cost, epochs = replays.compare(*span, self._fade, rules.epoch_jobs, executor)
        latest = replays.real_costs(self.start, first, played, reached)[-rules.epoch_jobs :]
        is_new = is_new_workload(self._jobs, done) and done - self._num_settled >= P.latest_jobs
        self._num_settled = done if is_new else self._num_settled
        return EpochComparison(
            *(cost, epochs, played, done, now),
            real=replays.real_cost(self.start, *span, self._fade),
            real_latest=float(latest.mean()),
            least=replays.least_cost(*span, self._fade),
            is_new=is_new,
        )
