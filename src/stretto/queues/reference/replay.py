"""The definition of a queue replay, as a slow and obvious program; the kernels must equal it to the last bit.

This text is the definition; the program has one file per idea, each of which builds on the one before it:
``queue_reference_pool``, ``_state``, ``_estimates``, ``_order``, ``_jobs``, ``_choice``, ``_nodes``, ``_pass``, and
here the loop over time.

**Jobs.** A rigid job takes ``width`` processors of one pool for ``run / speed`` seconds. It arrives when it is
submitted or when its last parent ends, whichever is later. With ``kill`` it ends after its wall limit, if that is
less. Children of a killed job run all the same.

**Moments.** Time goes from one moment to the next at which something happens. At a moment:

0. nodes beyond ``min_nodes`` that have been idle for ``idle_shutdown_s`` have gone, at the time this was reached;
1. all completions, kills and interruptions, by lower job; then, by lower pool: the pool closes or opens (its price
   crosses the bid), and ordered nodes come up;
2. all arrivals, by lower job;
3. one pass.

What takes no time happens in the next moment of the same time. With ``one-event``, a moment is one arrival, or else
one completion, or else all of the pools' news. Then a job may be due whose end has not had its turn.

**Pass.** Waiting jobs stand by key, lower first; equal keys by lower job.

- *Head*: jobs start from the head of the queue while they fit.
- *Orders*: for the jobs that are left, in queue order, elastic pools order the nodes that are missing beside what is
  free or on its way, until a job cannot be given any. The head, should no pool be large enough for it, gets one that
  is.
- *Promise*: in each pool, when will enough processors be free for the head, by the expected ends of running jobs and
  the nodes on their way? The earliest is the shadow time; what is then free beyond the head's need is the extra. Both
  are computed anew in every pass, from estimates only.
- *Backfill*: ``easy`` starts later jobs, in queue order, that fit now and, in the promised pool, end by the shadow
  time or take no more than the extra. ``easy-sjbf`` looks at them by estimate. ``slack`` replaces the shadow time by
  the first shadow time that this head was given plus ``slack`` times its estimate, if that is later. ``conservative``
  plans all waiting jobs in queue order, each as early as the ones before it allow, and starts those whose time has
  come.

**Estimates.** A running job's expected end is its start plus its estimate; one that has outlived it is expected to
end now. With ``one-event``, one that is due or has outlived its estimate is expected to end in one second.
Predictions (``last-two``: mean of the user's last two ended jobs; ``quantile``: the user's estimate times a quantile
of run/estimate over the user's last jobs) are made on arrival, never exceed the user's estimate, and are raised by
the steps of Tsafrir, Etsion, Feitelson (2007) when outlived.

**Pools.** ``first`` takes the first pool that fits, ``cheapest`` the least USD by estimate, ``fastest`` the least
time. ``burst`` takes pool 0, and another only where it cannot start in pool 0 now and either that saves its deadline,
or the wait in pool 0 (work running and ahead in the queue, over its processors) is worth more than the additional
price. ``pack`` counts, of nodes that are up and have room, only the job's part, and of new ones also what they idle.
``owned`` takes pool 0 for every job that fits it.

**Nodes** are paid from coming up to going, in ``billing_s`` begun, at the prices of the time. Jobs are packed: free
processors make as many idle nodes as they can; the node idle for the shortest time is used first and the oldest idle
one goes first; of the paid nodes the oldest goes first. No node goes that the promised head needs, or that an order
counted on.

**Spot.** A job on m nodes is interrupted when the hazard, integrated over its m nodes, reaches its next unit
exponential. The lost node is replaced at once. A closed pool loses its jobs and its nodes, and gets its ``min_nodes``
again after opening, provisioned. An interrupted job waits again with its old arrival and keeps whole checkpoints.

**Fair share.** Ended attempts are charged to their user in processor-seconds, with a half-life.
"""

from __future__ import annotations

import math

import numpy as np

from stretto.queues.kernels import codes
from stretto.queues.kernels.outcome import ReplayOutcome
from stretto.queues.reference.start_pass import Passes
from stretto.queues.setup import ReplaySetup


class Reference(Passes):
    """From one moment to the next."""

    def run(self) -> int:
        """Replay everything; return DONE, or STUCK where jobs wait for what never comes."""
        self.sync_idle()
        while self.num_done < self.n:
            then = self.next_moment()
            if then == math.inf:
                return codes.STUCK
            self.expire_idle(then)
            self.now = then
            self.happen()
            self.raise_predictions()
            self.keep = {}
            if self.waiting:
                self.schedule()
            self.sync_idle()
        self.close_accounts()
        return codes.DONE

    def next_moment(self) -> float:
        times = [*self.arrival.values(), *self.running.values()]
        for state in self.pools:
            times += [*state.pending, state.next_flip()]
        return min(times, default=math.inf)

    def happen(self) -> None:
        arrivals = sorted(j for j, time in self.arrival.items() if time == self.now)
        stops = sorted(j for j, time in self.running.items() if time == self.now)
        if self.rules.one_event:
            if arrivals:
                arrivals, stops, news = arrivals[:1], [], False
            elif stops:
                stops, news = stops[:1], False
            else:
                news = True
        else:
            news = True
        for job in stops:
            self.stop(job)
        if news:
            for k in range(len(self.pools)):
                self.flip(k)
                self.come_up(k)
        if not self.rules.one_event:  # ends at this moment may have released children
            arrivals = sorted(j for j, time in self.arrival.items() if time == self.now)
        for job in arrivals:
            self.arrive(job)


def replay_reference(setup: ReplaySetup) -> tuple[ReplayOutcome, int]:
    """Replay a set-up slowly; return what happened and DONE or STUCK."""
    replay = Reference(setup)
    with np.errstate(all="raise"):
        status = replay.run()
    return replay.out, status
