"""Futures on the nodes and partitions of a site: the replay on nodes continues from what runs and waits at a moment."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, replace

import numpy as np

from stretto.core.csr import Floats
from stretto.core.site import Site
from stretto.core.trace import Trace
from stretto.errors import Infeasible
from stretto.queues.kernels import codes
from stretto.queues.nodes.islands import ptr
from stretto.queues.nodes.kernels.arrays import NEXT_REOPENING, Longs, NodeJobs, NodeRules, PlaceStore
from stretto.queues.nodes.one_node import one_node
from stretto.queues.nodes.rules import node_rules
from stretto.queues.nodes.run import NodeReplay, NodeRun, longer, run_on_nodes
from stretto.queues.nodes.setup import NodeSetup, prepare_nodes
from stretto.queues.when.futures import PlainFutures, Rows, outlooks_of
from stretto.queues.when.kernels.moment import Moment, by_estimates, draw_arrivals, draw_runs
from stretto.queues.when.kernels.nodes import take_up
from stretto.queues.when.known import KnownQueue
from stretto.queues.when.learner import Outlook
from stretto.queues.when.parameters import WHEN_PARAMETERS as P

#: How far a future is played at first; twice as far each time until the wanted jobs have started.
_FIRST_SPAN_S = 4 * 3600.0


@dataclass(frozen=True, eq=False)
class PlacedQueue:
    """A queue on a site: what its jobs ask for, and where they run.

    Attributes
    ----------
    trace, kill, perfect
        What the set-up was made from, to make it anew with another request.
    choice
        Which of the shapes that its job may take each place has.
    """

    trace: Trace
    kill: bool
    perfect: bool
    setup: NodeSetup
    rules: NodeRules
    place_ptr: Longs  # [n+1]
    node: Longs  # as the kernels number them
    tasks: Longs
    choice: Longs

    @staticmethod
    def of(
        trace: Trace, site: Site, code: int, backfill: int, *, kill: bool, perfect: bool
    ) -> tuple[PlacedQueue, NodeRun]:
        """Replay a trace on a site; return its queue, and when its jobs run."""
        setup = prepare_nodes(trace, site, kill=kill, perfect=perfect)
        rules = node_rules(setup, code, backfill)
        run = run_on_nodes(setup, rules)
        number = np.empty(len(setup.site_arrays.order), np.int64)
        number[setup.site_arrays.order] = np.arange(len(number))
        job = np.repeat(np.arange(len(run.start_s)), np.diff(run.place_ptr))
        first = _first_choice(setup.arrays, job)
        choice = np.zeros(len(job), np.int64)
        while np.any(other := setup.arrays.alternative[first + choice] != run.shape):
            choice[other] += 1
        return PlacedQueue(
            trace, kill, perfect, setup, rules, run.place_ptr, number[run.node], run.tasks.astype(np.int64), choice
        ), run

    @staticmethod
    def on_one_node(queue: KnownQueue) -> PlacedQueue:
        """Return the queue of one machine as that of a site with one node, which also plays orders that change."""
        setup, n = one_node(queue.jobs, queue.num_procs), queue.num_jobs
        rules = node_rules(setup, queue.rules.code, codes.EASY if queue.rules.easy else codes.NONE)
        first = np.zeros(n, np.int64)
        return PlacedQueue(queue.trace, False, False, setup, rules, np.arange(n + 1), first, first + 1, first)

    def changed(self, trace: Trace) -> PlacedQueue:
        """Return the same queue with other requests; what runs stays where it is."""
        return replace(
            self, trace=trace, setup=prepare_nodes(trace, self.setup.site, kill=self.kill, perfect=self.perfect)
        )

    def row_of(self, job: int) -> int:
        """Return the row of a job in the trace."""
        return int(np.flatnonzero(self.setup.kept)[job])

    def places_of(self, jobs: Rows) -> tuple[Longs, tuple[Longs, Longs, Longs]]:
        """Return where jobs run, one job's places behind the other's."""
        count = (self.place_ptr[1:] - self.place_ptr[:-1])[jobs]
        begin = np.repeat(self.place_ptr[jobs], count)
        place_ptr = ptr(count.tolist())
        entry = begin + np.arange(len(begin)) - np.repeat(place_ptr[:-1], count)
        arrays = self.setup.arrays
        shape = arrays.alternative[_first_choice(arrays, np.repeat(jobs, count)) + self.choice[entry]]
        return place_ptr, (self.node[entry], self.tasks[entry], shape)


def _first_choice(jobs: NodeJobs, job: Rows) -> Longs:
    """Return where the shapes of jobs begin."""
    first: Longs = jobs.alternative_ptr[jobs.component_ptr[jobs.kind[job]]]
    return first


class SiteFutures:
    """Plays futures on nodes; a long queue gets fewer of them."""

    def __init__(self, queue: KnownQueue, seed: int, num_futures: int) -> None:
        self.queue, self.num_futures = queue, num_futures
        self.site = PlacedQueue.on_one_node(queue) if queue.site is None else queue.site
        self._plain = PlainFutures(queue, seed, num_futures)

    def outlooks(self, now_s: float, rows: Rows) -> list[Outlook]:
        """Return what is known of waiting jobs at a moment, no earlier than the last one."""
        plain = self._plain
        plain.look(now_s, int(rows[0]) if len(rows) == 1 else -1)
        m = plain.moment
        there = int(m.num[0] + m.num[1])
        wanted = int(m.num[0]) + np.searchsorted(m.job[int(m.num[0]) : there], rows)
        present = _Present(self.queue, self.site, m, now_s)
        wait = np.zeros((1 + fewer(self.num_futures, int(m.num[1]), P.site_jobs), len(rows)))
        for i in range(len(wait)):
            if i == 0:
                by_estimates(m)
            else:
                draw_runs(plain.known, plain.forecasts, m, now_s, plain.random)
                draw_arrivals(
                    plain.known, plain.forecasts, self.queue.rules.code, m, plain.num_arrived, now_s, plain.random
                )
            wait[i] = present.play(m, wanted)
        share = float(m.procs[int(m.num[0]) : there].sum()) / self.queue.num_procs
        return outlooks_of(self.queue, now_s, rows, wait, share)

    def due_s(self, row: int) -> float | None:
        """Return None: futures on nodes know no promises."""
        return None


def fewer(num_futures: int, num_waiting: int, most_jobs: int) -> int:
    """Return how many futures are played, all together with so many waiting jobs at most; three are the least."""
    return min(num_futures, max(3, most_jobs // max(1, num_waiting)))


class _Present:
    """The jobs that run and wait at a moment, as a queue of their own that arrivals can join."""

    def __init__(self, queue: KnownQueue, site: PlacedQueue, m: Moment, now_s: float) -> None:
        self._queue, self._site, self._now_s = queue, site, now_s
        self._running = m.job[: int(m.num[0])].copy()
        self._place_ptr, self._places = site.places_of(self._running)

    def play(self, m: Moment, wanted: Rows) -> Floats:
        """Return how long the wanted jobs wait, places of the moment, if it goes as was drawn."""
        setup = self._site.setup
        arrays = self._arrays(m)
        replay = NodeReplay(replace(setup, arrays=arrays))
        replay.store = self._store(replay.store)
        state, rules = replay.state, self._site.rules
        state.clock[0] = self._now_s
        state.counts[NEXT_REOPENING] = np.searchsorted(setup.site_arrays.reopening, self._now_s, side="right")
        take_up(
            setup.site_arrays,
            setup.shapes,
            arrays,
            rules,
            state,
            replay.store,
            replay.out,
            self._place_ptr,
            int(m.num[1]),
        )
        begin, there = int(m.num[0]), int(m.num[0] + m.num[1])
        state.ready[begin:there] = self._queue.jobs.submit[m.job[begin:there]]
        span = _FIRST_SPAN_S
        with suppress(Infeasible):  # nothing happens any more
            while not replay.run(rules, self._now_s + span) and np.any(np.isnan(replay.out.start[wanted])):
                span *= 2.0
        start = replay.out.start[wanted]
        return np.maximum(0.0, np.where(np.isnan(start), state.clock[0], start) - self._now_s)

    def _arrays(self, m: Moment) -> NodeJobs:
        """Return the jobs of a future: those that run, those that wait, those that come."""
        whole, count, there = self._site.setup.arrays, int(m.num.sum()), int(m.num[0] + m.num[1])
        job = m.job[:count]
        submit = self._queue.jobs.submit[job].copy()
        submit[there:] = self._now_s + m.submit[there:count]
        run = m.run[:count].copy()
        kind = whole.kind[job]
        num_islands = len(whole.queue_ptr) - 1
        first, last = whole.limit_ptr[job], whole.limit_ptr[job + 1]
        count_of = last - first
        limits = np.repeat(first, count_of) + np.arange(int(count_of.sum()))
        limits -= np.repeat(np.cumsum(count_of) - count_of, count_of)
        return whole._replace(
            submit=submit,
            run=run,
            estimate=np.maximum(m.estimate[:count], run),
            procs=whole.procs[job],
            deadline=whole.deadline[job]
            + np.where(np.arange(count) < there, 0.0, submit - self._queue.jobs.submit[job]),
            kind=kind,
            queue_ptr=ptr((2 * np.bincount(whole.island[kind], minlength=num_islands)).tolist()),
            limit_ptr=ptr(count_of.tolist()),
            limit_of=whole.limit_of[limits],
            limit_amount=whole.limit_amount[limits],
            roots=np.arange(there, count),
            num_parents=np.zeros(count, whole.num_parents.dtype),
            child_ptr=np.zeros(count + 1, whole.child_ptr.dtype),
            child=np.zeros(0, whole.child.dtype),
        )

    def _store(self, store: PlaceStore) -> PlaceStore:
        """Return a store whose first entries say where jobs run."""
        node, tasks, shape = self._places
        while len(store.node) < len(node) + len(self._site.setup.site.nodes):
            store = longer(store)
        for name, values in (("node", node), ("tasks", tasks), ("shape", shape)):
            getattr(store, name)[: len(node)] = values
        return store
