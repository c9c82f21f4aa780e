"""Replay a trace on the nodes and partitions of a site with MARS: the same epochs, selector and costs as on a machine.

Approximations beside the replay on a plain machine: the keys of a network are up to some minutes old
(``site_queue.UPDATE_S``), networks hold no job back, and do not know since when the operator's policy would have had a
job running.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace

import numpy as np

from stretto.core.csr import Floats
from stretto.core.site import Site
from stretto.core.trace import QueueArrays, Trace
from stretto.errors import Infeasible, InvalidInput
from stretto.queues.forecasts.kernels.online import ForecastState
from stretto.queues.forecasts.state import new_forecasts
from stretto.queues.mars.candidates import POLICY, WEIGHTED_POLICY, Candidate
from stretto.queues.mars.cost import JobCost
from stretto.queues.mars.counterfactual import CounterfactualReplays
from stretto.queues.mars.kernels.score import ScoreState, new_scores
from stretto.queues.mars.parameters import MARS_PARAMETERS, MarsParameters
from stretto.queues.mars.replay import EpochReplay, MarsReplay, MarsSettings
from stretto.queues.mars.run_record import ChoiceRecorder
from stretto.queues.mars.site_queue import CandidateQueue, SiteRules, correct_ends
from stretto.queues.nodes.promised import NodePromiseQueue
from stretto.queues.nodes.replay import to_result
from stretto.queues.nodes.run import NodeRun
from stretto.queues.nodes.setup import NodeSetup, prepare_nodes
from stretto.queues.promises.queue import PromiseQueue
from stretto.queues.promises.slack import Slack, SlackTable
from stretto.queues.result import QueueResult, Watch
from stretto.runlog import Run


def mars_on_site(
    trace: Trace,
    site: Site,
    *,
    settings: MarsSettings | None = None,
    candidates: Sequence[Candidate] | None = None,
    slack: Slack | SlackTable | None = None,
    rules: MarsParameters = MARS_PARAMETERS,
    run: Run | None = None,
    watch: Watch | None = None,
    seed: int = 0,
    num_threads: int = 2,
    spec: dict[str, object] | None = None,
) -> tuple[QueueResult, MarsReplay]:
    """Replay a trace on a site, following at each epoch the candidate that the selector trusts.

    Parameters
    ----------
    settings
        Of the operator, whose policy is ``multifactor`` where the site has weights, and ``fcfs`` elsewhere.
    candidates
        In place of those of the settings; the first is the operator's policy.
    slack, rules, run, watch, seed
        As for :func:`mars_replay`.
    spec
        The rules by name, for the result.
    """
    setup = prepare_nodes(trace, site)
    if setup.trace.parent is not None and len(setup.trace.parent):
        raise InvalidInput("MARS replays jobs without dependencies only", field="dependencies")
    said = settings if settings is not None else MarsSettings()
    policy = POLICY if site.policy.priority is None else WEIGHTED_POLICY
    given = candidates if candidates is not None else said.candidates(starts_jobs=False, site_policy=policy)
    promised = SlackTable.parse(slack or Slack(np.inf))
    replayed = SiteEpochs(setup, list(given), promised, rules, said.cost, seed)
    names = tuple(one.name for one in given)
    replayed.recorder = None if run is None else ChoiceRecorder(run, names[replayed.selector.chosen], said.cost)
    with ThreadPoolExecutor(num_threads) as executor:
        count = replayed.play(executor, watch)
    part, found = _first(setup, replayed.real.queue.result(), count)
    result = to_result(part, found, spec or {})
    due = replayed.real.queue.due_s[:count]
    told = MarsReplay(
        part.trace,
        names,
        found.start_s,
        due,
        replayed.chosen[:count],
        tuple(replayed.choices),
        setup.num_dropped,
        said.cost,
        setup.trace.num_jobs - count,
    )
    return (result if slack is None else replace(result, due_s=due)), told


def _first(setup: NodeSetup, run: NodeRun, count: int) -> tuple[NodeSetup, NodeRun]:
    """Return the part of a replay that the first jobs are."""
    if count == setup.trace.num_jobs:
        return setup, run
    last = int(run.place_ptr[count])
    part = NodeRun(
        *(run.start_s[:count], run.end_s[:count], run.ready_s[:count], run.place_ptr[: count + 1]),
        *(run.node[:last], run.tasks[:last], run.shape[:last]),
    )
    return replace(setup, trace=setup.trace.window(0, count), is_killed=setup.is_killed[:count]), part


class SiteEpochs(EpochReplay):
    """One replay on a site, from epoch to epoch.

    Attributes
    ----------
    real
        The real queue; ``queue`` is a view of it.
    """

    def __init__(
        self,
        setup: NodeSetup,
        candidates: list[Candidate],
        slack: SlackTable,
        rules: MarsParameters,
        cost: JobCost,
        seed: int = 0,
    ) -> None:
        self._candidates = candidates
        self._begin(setup.trace.num_jobs, candidates, rules, seed)
        jobs = setup.trace.arrays()._replace(run=setup.arrays.run, estimate=setup.arrays.estimate)
        slack_s = slack.of(setup.trace, jobs.estimate)
        codes = SiteRules(setup, candidates)
        chosen = candidates[self.selector.chosen]
        view = PromiseQueue.of(jobs, setup.site.num_cpus, slack_s, new_forecasts(jobs, setup.trace))
        scores = new_scores(len(self.chosen))
        queue = NodePromiseQueue.of(setup, slack_s, codes.of(chosen))
        self.real = CandidateQueue(queue, jobs, view.state, scores, codes, chosen, view.forecasts, is_real=True)
        self.queue = replace(view, state=self.real.view)
        self._scores = scores
        self._replays = SiteReplays(self.queue, scores, candidates, slack_s, cost, seed, setup=setup, rules=codes)

    def _advance(self, num_jobs: int) -> None:
        submit = self.real.jobs.submit
        self.real.follow(self._candidates[self.selector.chosen])
        self.real.go(float(submit[num_jobs - 1]) if num_jobs <= len(submit) else np.inf)

    def _finish(self, num_arrived: int) -> int:
        self.real.admit_no_more()
        with suppress(Infeasible):  # the others never arrive
            self.real.go(np.inf)
        count = len(self.real.jobs.submit)
        if np.any(np.isnan(self.real.queue.start_s[:count])):
            raise Infeasible(f"jobs of {self.real.queue.replay.setup.trace.name!r} wait for ever")
        return count


class SiteReplays(CounterfactualReplays):
    """The sites of all candidates.

    Parameters
    ----------
    real
        A view of the real queue.
    setup
        Of the real queue; everybody else has guesses in place of the run times that are not known.
    rules
        Of all candidates.
    """

    def __init__(
        self,
        real: PromiseQueue,
        scores: ScoreState,
        candidates: Sequence[Candidate],
        slack_s: Floats,
        cost: JobCost,
        seed: int,
        *,
        setup: NodeSetup,
        rules: SiteRules,
    ) -> None:
        super().__init__(real, scores, candidates, slack_s, cost, seed)
        np.minimum(self.jobs.run, self.jobs.estimate, out=self.jobs.run)
        believed = replace(setup, arrays=setup.arrays._replace(run=self.jobs.run))
        self._queues = [self._queue(k, believed, slack_s, rules, self.jobs) for k in range(len(candidates))]

    def _queue(self, k: int, setup: NodeSetup, slack_s: Floats, rules: SiteRules, jobs: QueueArrays) -> CandidateQueue:
        one, state = self._candidates[k], self._states[k]
        assert state is not None
        queue = NodePromiseQueue.of(setup, slack_s, rules.of(one))
        return CandidateQueue(queue, jobs, state, self._scores[k], rules, one, self._nothing, is_real=False)

    def _guess(self, forecasts: ForecastState, elapsed: Floats) -> Floats:
        """Draw run times as on a plain machine; the plan on nodes needs estimates that no job outlives."""
        guess: Floats = np.minimum(super()._guess(forecasts, elapsed), self.jobs.estimate[self._open])
        return guess

    def _continue(self, k: int, num_jobs: int) -> Floats:
        correct_ends(self._queues[k].queue)
        self._queues[k].go(float(self.jobs.submit[num_jobs - 1]))
        return self._queues[k].queue.start_s
