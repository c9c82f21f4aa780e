"""Replay a trace with MARS: at every epoch, follow the candidate that has surely been cheapest, inside promises."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from dataclasses import asdict, dataclass

import numpy as np
from numpy.typing import NDArray

from stretto.core.csr import Floats
from stretto.core.trace import Trace
from stretto.errors import InvalidInput
from stretto.queues.forecasts.state import new_forecasts
from stretto.queues.mars.candidates import Candidate, candidates_of
from stretto.queues.mars.cost import USUAL, JobCost
from stretto.queues.mars.counterfactual import CounterfactualReplays
from stretto.queues.mars.epochs import Epochs
from stretto.queues.mars.kernels.play import play_beside
from stretto.queues.mars.kernels.score import new_scores, put_all_through
from stretto.queues.mars.network import TRAINED, MarsNet, load_nets
from stretto.queues.mars.online import OnlineLearner
from stretto.queues.mars.parameters import MARS_PARAMETERS, MarsParameters
from stretto.queues.mars.policy_queue import PolicyQueue
from stretto.queues.mars.run_record import ChoiceRecorder
from stretto.queues.mars.selector import Choice
from stretto.queues.promises.queue import PromiseQueue
from stretto.queues.promises.slack import Slack, SlackTable
from stretto.queues.result import Watch
from stretto.runlog import Run


@dataclass(frozen=True)
class MarsSettings:
    """The choices of the operator; all of them have a default.

    Attributes
    ----------
    nets
        A file of trained networks, as ``stretto train mars --save`` writes it; none by default.
    default
        The operator's policy: where learning starts, and what it is never allowed to cost much more than.
    """

    nets: str | None = None
    default: str | None = None
    cost: JobCost = USUAL

    def candidates(self, *, starts_jobs: bool = True, site_policy: str | None = None) -> list[Candidate]:
        """Return what is chosen from, the operator's policy first.

        Parameters
        ----------
        starts_jobs
            Whether jobs can be held back; where they cannot, a trained network is asked for its order only.
        site_policy
            On a site, the operator's policy where none is named; ``multifactor`` may be one there.
        """
        nets = [] if self.nets is None else _read(self.nets)
        if self.nets is None and self.default == TRAINED:
            message = f"{TRAINED!r} is in the file that stretto train mars --save wrote; name it with --nets FILE"
            raise InvalidInput(message, field="default")
        default = site_policy if self.default is None else self.default
        return candidates_of(default=default, nets=nets, starts_jobs=starts_jobs, on_site=site_policy is not None)

    def spec(self) -> dict[str, object]:
        """Return what is not the default, flat and by name."""
        told = {"nets": self.nets, "default": self.default, **asdict(self.cost)}
        usual = {"nets": None, "default": None, **asdict(USUAL)}
        return {name: value for name, value in told.items() if value != usual[name]}


def _read(path: str) -> list[MarsNet]:
    try:
        return load_nets(path)[0]
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
    due_s
        The promised latest start of each job; inf = none.
    chosen
        Per job, the index in ``candidates`` of what was followed when it arrived.
    choices
        One per epoch, with the estimates behind it.
    cost
        What was compared.
    num_unplayed
        Jobs that had not arrived when the replay was stopped; they are not in ``trace``.
    untrained
        Candidates that are neither networks nor orders of the catalog by themselves: pairs in pools.
    """

    trace: Trace
    candidates: tuple[str, ...]
    start_s: Floats  # [n]
    due_s: Floats  # [n]
    chosen: NDArray[np.int64]  # [n]
    choices: tuple[Choice, ...]
    num_dropped: int
    cost: JobCost = USUAL
    num_unplayed: int = 0
    untrained: tuple[str, ...] = ()

    @property
    def shares(self) -> dict[str, float]:
        """Return for which share of the jobs each candidate was followed, the largest first."""
        count = np.bincount(self.chosen, minlength=len(self.candidates)) / max(1, len(self.chosen))
        order = np.argsort(-count, kind="stable")
        return {self.candidates[k]: float(count[k]) for k in order if count[k] > 0}


def play_mars(
    trace: Trace,
    num_procs: int,
    *,
    settings: MarsSettings | None = None,
    slack: Slack | SlackTable | None = None,
    run: Run | None = None,
    watch: Watch | None = None,
    seed: int = 0,
) -> MarsReplay:
    """Replay a trace with the settings of an operator; the other parameters are those of :func:`mars_replay`."""
    said = settings if settings is not None else MarsSettings()
    return mars_replay(
        trace, num_procs, candidates=said.candidates(), slack=slack, cost=said.cost, run=run, watch=watch, seed=seed
    )


def mars_replay(
    trace: Trace,
    num_procs: int,
    *,
    candidates: Sequence[Candidate] | None = None,
    slack: Slack | SlackTable | None = None,
    rules: MarsParameters = MARS_PARAMETERS,
    cost: JobCost = USUAL,
    run: Run | None = None,
    watch: Watch | None = None,
    seed: int = 0,
    num_threads: int = 2,
    learns: bool = False,
) -> MarsReplay:
    """Replay a trace, following at each epoch the candidate that the selector trusts.

    Parameters
    ----------
    candidates
        The first is the operator's policy; by default those of :func:`candidates_of`.
    slack
        Of the promises that every job is given; None = nothing is promised.
    cost
        What is minimized.
    run
        Where choices and rewards (minus what an ended job cost) are recorded during the replay.
    watch
        Told at every epoch how many jobs of how many have arrived. Where it returns False, the replay ends there: the
        jobs that have arrived are replayed to their ends, and only they are in the result.
    seed
        For guesses of run times in counterfactual replays, and for the certainty of comparisons.
    learns
        Whether the first trained network is trained further while the queue runs.
    """
    if trace.parent is not None and len(trace.parent):
        raise InvalidInput("MARS replays jobs without dependencies only", field="dependencies")
    kept, num_dropped = trace.fitting(num_procs)
    followed = list(candidates if candidates is not None else candidates_of())
    promised = SlackTable.parse(slack or Slack(np.inf))
    learner = None
    if learns:
        first = next((one for one in followed if one.is_trained), None)
        if first is None:
            raise InvalidInput("there is no trained network to train further", field="learns")
        learner = OnlineLearner(kept, num_procs, MarsNet(first.name, first.net), promised.default, cost, seed)
        followed.append(learner.candidate())
    names = [one.name for one in followed]
    replayed = EpochReplay(kept, num_procs, followed, promised, rules, cost, seed)
    replayed.learner = learner
    replayed.recorder = None if run is None else ChoiceRecorder(run, names[replayed.selector.chosen], cost)
    with ThreadPoolExecutor(num_threads) as executor:
        num_played = replayed.play(executor, watch)
    part = kept if num_played == kept.num_jobs else kept.window(0, num_played)
    return MarsReplay(
        part,
        tuple(names),
        replayed.queue.state.start[:num_played],
        replayed.queue.state.due[:num_played],
        replayed.chosen[:num_played],
        tuple(replayed.choices),
        num_dropped,
        cost,
        kept.num_jobs - num_played,
    )


class EpochReplay(Epochs):
    """One replay on a machine, from epoch to epoch.

    Attributes
    ----------
    learner
        Trains the last candidate further.
    """

    queue: PromiseQueue
    learner: OnlineLearner | None = None
    _replays: CounterfactualReplays

    def __init__(
        self,
        trace: Trace,
        num_procs: int,
        candidates: list[Candidate],
        slack: SlackTable,
        rules: MarsParameters,
        cost: JobCost,
        seed: int = 0,
    ) -> None:
        jobs = trace.arrays()
        n = len(jobs.submit)
        slack_s = slack.of(trace, jobs.estimate)
        self.queue = PromiseQueue.of(jobs, num_procs, slack_s, new_forecasts(jobs, trace))
        self._candidates = candidates
        self._beside = PolicyQueue.of(jobs, num_procs, candidates[0])
        self._scores = new_scores(n)._replace(reference=self._beside.queue.state.start)
        self._replays = CounterfactualReplays(self.queue, self._scores, candidates, slack_s, cost=cost, seed=seed)
        self._begin(n, candidates, rules, seed)

    def _advance(self, num_jobs: int) -> None:
        queue, one, beside = self.queue, self._candidates[self.selector.chosen], self._beside
        play_beside(
            *(queue.jobs, queue.num_procs, queue.state, one.order(learns=True), queue.forecasts),
            *(one.net, self._scores, self._rules.forecast_pause, num_jobs),
            *(beside.queue.jobs, beside.queue.state, beside.policy, beside.queue.forecasts),
        )

    def _finish(self, num_arrived: int) -> int:
        jobs = self.queue.jobs
        submit = jobs.submit.copy()
        submit[num_arrived:] = np.inf
        self.queue = PromiseQueue(
            jobs._replace(submit=submit), self.queue.num_procs, self.queue.state, self.queue.forecasts
        )
        self._advance(len(submit) + 1)
        return num_arrived

    def _reconsider(self, done: int, executor: Executor) -> None:
        rules, replays, before = self._rules, self._replays, self.selector.chosen
        now = float(self.queue.jobs.submit[done - 1])
        replays.learn(self.queue.forecasts, done, now)
        played = min(done - rules.lag_jobs, replays.num_playable)
        if played < rules.epoch_jobs:
            return
        is_taught = self._learn(played)
        replays.play(played, executor)
        self._choose(replays.epochs(played, rules.epoch_jobs), done, now)
        if self.selector.chosen != before or is_taught:
            put_all_through(self.queue.state, self._candidates[self.selector.chosen].net, self._scores)

    def _learn(self, num_known: int) -> bool:
        """Train the last candidate further where that is due; say whether it has changed."""
        learner = self.learner
        if learner is None or not learner.update(self._replays.jobs.run, num_known):
            return False
        self._candidates[-1] = learner.candidate()
        self._replays.replace(len(self._candidates) - 1, self._candidates[-1])
        return True
