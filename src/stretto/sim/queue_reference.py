"""The definition of a queue replay, as a slow and obvious program; the kernels must equal it to the last bit.

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
one completion, or else all of the pools' news.

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
  the first shadow that this head was ever given plus ``slack`` times its estimate, if that is later. ``conservative``
  plans all waiting jobs in queue order, each as early as the ones before it allow, and starts those whose time has
  come.

**Estimates.** A running job's expected end is its start plus its estimate; one that has outlived it is expected to
end now. Predictions (``last-two``: mean of the user's last two ended jobs; ``quantile``: the user's estimate times a
quantile of run/estimate over the user's last jobs) are made on arrival, never exceed the user's estimate, and are
raised by the steps of Tsafrir, Etsion, Feitelson (2007) when outlived.

**Pools.** ``first`` takes the first pool that fits, ``cheapest`` the least USD by estimate, ``fastest`` the least
time. ``burst`` takes pool 0, and another only where it cannot start in pool 0 now and either that saves its deadline,
or the wait in pool 0 (work running and ahead in the queue, over its processors) is worth more than the additional
price.

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
from dataclasses import dataclass, field

import numpy as np

from stretto.domain.pool import Pool
from stretto.kernels import queue_codes as codes
from stretto.kernels import queue_keys as keys
from stretto.kernels.queue_outcome import Outcome, new_outcome
from stretto.sim.queue_setup import Setup, base_nodes

#: Minutes and hours by which an outlived prediction is raised, one after the other.
RAISES_S = (60, 300, 900, 1800, 3600, 7200, 18000, 36000, 72000, 180000, 360000)
WINDOW = 32
_HOUR = 3600.0


@dataclass
class PoolState:
    """One pool at a moment."""

    pool: Pool
    free: int = 0
    closed: bool = False
    pending: list[float] = field(default_factory=list)  # when each ordered node comes up
    began: list[float] = field(default_factory=list)  # of each node that is up, oldest first
    idle: list[float] = field(default_factory=list)  # since when, oldest first
    node_s: float = 0.0
    usd: float = 0.0

    @property
    def per_node(self) -> int:
        return self.pool.procs_per_node

    @property
    def capacity(self) -> int:
        return (len(self.began) + len(self.pending)) * self.per_node

    @property
    def headroom(self) -> int:
        """Nodes that could still be ordered; a pool of fixed size has all that it can have."""
        return 0 if not self.pool.is_elastic else self.pool.num_nodes - len(self.began) - len(self.pending)

    def steps(self) -> list[tuple[float, float, float]]:
        """Return (time, price, hazard), the first at zero."""
        spot = self.pool.spot
        if spot is None:
            return [(0.0, self.pool.price_usd_per_hour, 0.0)]
        return list(
            zip(spot.time_s.tolist(), spot.price_usd_per_hour.tolist(), spot.hazard_per_hour.tolist(), strict=True)
        )

    def price(self, now: float) -> float:
        return [price for time, price, _ in self.steps() if time <= now][-1]

    def is_closed(self, price: float) -> bool:
        return self.pool.spot is not None and price > self.pool.spot.bid_usd_per_hour

    def next_flip(self) -> float:
        """Return when the pool next closes or opens."""
        for time, price, _ in self.steps()[self.seen :]:
            if self.is_closed(price) != self.closed:
                return time
        return math.inf

    seen: int = 1  # price steps that lie behind

    def pay(self, begin: float, end: float) -> None:
        """Bill one node."""
        billing = self.pool.billing_s
        paid = math.ceil((end - begin) / billing) * billing
        self.node_s += paid
        steps = self.steps()
        for i, (time, price, _) in enumerate(steps):
            until = steps[i + 1][0] if i + 1 < len(steps) else math.inf
            overlap = min(until, begin + paid) - max(time, begin)
            if overlap > 0:
                self.usd += overlap / _HOUR * price


class Reference:
    """A replay in progress."""

    def __init__(self, setup: Setup) -> None:
        self.setup, self.rules, self.q = setup, setup.rules, setup.jobs
        n = setup.trace.num_jobs
        self.n = n
        self.out: Outcome = new_outcome(n, len(setup.pools))
        self.pools = [PoolState(pool) for pool in setup.pools]
        for state in self.pools:
            state.closed = state.is_closed(state.price(0.0))
            if not state.closed:
                state.began = [0.0] * base_nodes(state.pool)
                state.free = len(state.began) * state.per_node
        self.missing = self.q.num_parents.tolist()
        self.arrival = {j: float(self.q.submit[j]) for j in range(n) if self.missing[j] == 0}
        self.waiting: list[int] = []
        self.running: dict[int, float] = {}  # job -> when the attempt stops; in order of start
        self.place: dict[int, int] = {}
        self.began: dict[int, float] = {}
        self.expected: dict[int, float] = {}
        self.raised: dict[int, int] = {}
        self.ending: dict[int, str] = {}
        self.kept = [0.0] * n
        self.predicted = [0.0] * n
        self.promised = [math.nan] * n
        self.history: dict[int, list[tuple[float, float]]] = {}
        self.usage: dict[int, tuple[float, float]] = {}
        self.total: tuple[float, float] = (0.0, 0.0)
        self.num_done = 0
        self.now = 0.0
        self.keep: dict[int, int] = {}  # processors of pools whose nodes must not go
        self.backlog = 0.0

    # ---- time -------------------------------------------------------------------------------------------------

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

    # ---- jobs -------------------------------------------------------------------------------------------------

    def arrive(self, job: int) -> None:
        self.out.ready[job] = self.arrival.pop(job)
        self.predicted[job] = self.predict(job)
        self.waiting.append(job)

    def predict(self, job: int) -> float:
        estimate = float(self.q.estimate[job])
        ended = self.history.get(int(self.q.user[job]), [])
        if self.rules.estimates == codes.LAST_TWO and len(ended) >= 2:
            return min(estimate, (ended[-2][0] + ended[-1][0]) / 2)
        if self.rules.estimates == codes.QUANTILE and len(ended) >= 2:
            ratios = sorted(ratio for _, ratio in ended[-WINDOW:])
            return min(estimate, estimate * ratios[max(0, math.ceil(self.rules.quantile * len(ratios)) - 1)])
        return estimate

    def believed(self, job: int) -> float:
        return max(self.predicted[job] - self.kept[job], 0.0)

    def span(self, job: int, k: int) -> float:
        return self.believed(job) / self.pools[k].pool.speed

    def nodes(self, job: int, k: int) -> int:
        return -(-int(self.setup.width[job, k]) // self.pools[k].per_node)

    def start(self, job: int, k: int) -> None:
        state = self.pools[k]
        self.waiting.remove(job)
        state.free -= int(self.setup.width[job, k])
        left = float(self.q.run[job]) - self.kept[job]
        limit = max(float(self.setup.limit[job]) - self.kept[job], 0.0)
        self.ending[job] = "done"
        if self.rules.kill and left > limit:
            left, self.ending[job] = limit, "killed"
        end = self.now + left / state.pool.speed
        interruption = self.interruption(job, k)
        if interruption < end:
            end, self.ending[job] = interruption, "interrupted"
        self.running[job], self.place[job], self.began[job] = end, k, self.now
        self.expected[job] = self.now + self.span(job, k)
        self.raised[job] = 0

    def interruption(self, job: int, k: int) -> float:
        count = int(self.out.interruptions[job])
        if self.pools[k].pool.spot is None or not len(self.setup.draws) or count >= codes.NUM_DRAWS:
            return math.inf
        left = float(self.setup.draws[job, count])
        steps = self.pools[k].steps()
        for i, (time, _, hazard) in enumerate(steps):
            until = steps[i + 1][0] if i + 1 < len(steps) else math.inf
            begin = max(time, self.now)
            rate = hazard * self.nodes(job, k) / _HOUR
            if until <= begin or rate == 0:
                continue
            if begin + left / rate < until:
                return begin + left / rate
            left -= (until - begin) * rate
        return math.inf

    def stop(self, job: int) -> None:
        ending = self.ending[job]
        if ending == "interrupted":
            self.interrupt(job)
            return
        self.leave(job)
        self.num_done += 1
        self.out.start[job], self.out.end[job], self.out.pool[job] = self.began[job], self.now, self.place[job]
        self.out.killed[job] = ending == "killed"
        self.remember(job)
        for child in self.q.child[self.q.child_ptr[job] : self.q.child_ptr[job + 1]].tolist():
            self.missing[child] -= 1
            if self.missing[child] == 0:
                self.arrival[child] = max(self.now, float(self.q.submit[child]))

    def interrupt(self, job: int) -> None:
        self.leave(job)
        self.out.interruptions[job] += 1
        spot = self.pools[self.place[job]].pool.spot
        assert spot is not None
        if math.isfinite(spot.checkpoint_s):
            done = math.floor((self.now - self.began[job]) / spot.checkpoint_s) * spot.checkpoint_s
            self.kept[job] += done * self.pools[self.place[job]].pool.speed
        self.waiting.append(job)

    def leave(self, job: int) -> None:
        k = self.place[job]
        width = int(self.setup.width[job, k])
        self.pools[k].free += width
        del self.running[job]
        self.charge(int(self.q.user[job]), width * (self.now - self.began[job]))

    def remember(self, job: int) -> None:
        ran = float(self.setup.limit[job]) if self.out.killed[job] else float(self.q.run[job])
        estimate = float(self.q.estimate[job])
        ratio = ran / estimate if estimate > 0 else 1.0
        self.history.setdefault(int(self.q.user[job]), []).append((ran, ratio))

    def raise_predictions(self) -> None:
        if self.rules.estimates < codes.LAST_TWO:
            return
        for job in self.running:
            speed = self.pools[self.place[job]].pool.speed
            most = max(float(self.q.estimate[job]) - self.kept[job], 0.0)
            while self.expected[job] <= self.now and self.raised[job] < len(RAISES_S):
                raised = min(self.believed(job) + RAISES_S[self.raised[job]], most)
                self.expected[job] = self.began[job] + raised / speed
                self.raised[job] += 1

    def expects(self, job: int) -> float:
        return max(self.expected[job], self.now)

    # ---- fair share -------------------------------------------------------------------------------------------

    def decayed(self, entry: tuple[float, float]) -> float:
        value, since = entry
        return value * math.exp(-math.log(2.0) * ((self.now - since) / self.rules.half_life))

    def charge(self, user: int, proc_s: float) -> None:
        self.usage[user] = (self.decayed(self.usage.get(user, (0.0, 0.0))) + proc_s, self.now)
        self.total = (self.decayed(self.total) + proc_s, self.now)

    def fair_share(self, user: int) -> float:
        total = self.decayed(self.total)
        if total <= 0:
            return 1.0
        num_users = int(self.q.user.max()) + 1
        share = self.decayed(self.usage.get(user, (0.0, 0.0))) / total
        return math.exp(-math.log(2.0) * (share * num_users))

    # ---- order ------------------------------------------------------------------------------------------------

    def key(self, job: int) -> float:
        estimate, procs, code = self.believed(job), int(self.q.procs[job]), self.rules.strategy
        wait = self.now - float(self.out.ready[job])
        at_least_1 = max(1.0, estimate)
        s = math.log10(max(1.0, float(self.q.submit[job])))
        if code == codes.MULTIFACTOR:
            return -self.priority(job, wait)
        table = {
            keys.FCFS: lambda: float(job),
            keys.SHORTEST: lambda: estimate,
            keys.LONGEST: lambda: -estimate,
            keys.SMALLEST_AREA: lambda: estimate * procs,
            keys.LARGEST_AREA: lambda: -estimate * procs,
            keys.FEWEST_PROCS: lambda: float(procs),
            keys.MOST_PROCS: lambda: -float(procs),
            keys.DEADLINE: lambda: float(self.q.deadline[job]),
            keys.F1: lambda: math.log10(at_least_1) * procs + 870.0 * s,
            keys.F2: lambda: math.sqrt(estimate) * procs + 25600.0 * s,
            keys.F3: lambda: estimate * procs + 6.86e6 * s,
            keys.F4: lambda: estimate * math.sqrt(procs) + 5.3e5 * s,
            keys.EXPANSION: lambda: -(wait + at_least_1) / at_least_1,
            keys.WFP3: lambda: -(wait / at_least_1) * (wait / at_least_1) * (wait / at_least_1) * procs,
            keys.UNICEP: lambda: -wait / (max(1e-12, math.log2(procs)) * at_least_1),
        }
        return table[code]()

    def priority(self, job: int, wait: float) -> float:
        rules = self.rules
        all_procs = sum(state.pool.num_procs for state in self.pools)
        return (
            rules.age * min(1.0, wait / rules.max_age)
            + rules.size * (int(self.q.procs[job]) / all_procs)
            + rules.fair_share * self.fair_share(int(self.q.user[job]))
        )

    # ---- pools ------------------------------------------------------------------------------------------------

    def usd(self, job: int, k: int) -> float:
        return self.pools[k].price(self.now) * self.nodes(job, k) * self.span(job, k) / _HOUR

    def score(self, job: int, k: int) -> tuple[float, float, int]:
        """Return how much a job dislikes a pool."""
        if self.rules.pool_rule == codes.FIRST_FIT:
            return (0.0, 0.0, k)
        if self.rules.pool_rule == codes.FASTEST:
            return (self.span(job, k), self.usd(job, k), k)
        return (self.usd(job, k), self.span(job, k), k)

    def can_ever(self, job: int, k: int) -> bool:
        return not self.pools[k].closed and bool(self.setup.width[job, k] >= 0)

    def usable(self, job: int, ahead: float) -> list[int]:
        """Return the open pools that the rule lets a job use, when it cannot start in pool 0 now."""
        able = [k for k in range(len(self.pools)) if self.can_ever(job, k)]
        if self.rules.pool_rule != codes.BURST or 0 not in able:
            return able
        return [k for k in able if k == 0 or self.is_worth(job, k, ahead)]

    def is_worth(self, job: int, k: int, ahead: float) -> bool:
        home = (self.backlog + ahead) / self.pools[0].pool.num_procs + self.span(job, 0)
        fits = self.setup.width[job, k] <= self.pools[k].free
        there = (0.0 if fits else self.pools[k].pool.provision_s) + self.span(job, k)
        deadline = float(self.q.deadline[job])
        if self.now + home > deadline and self.now + there <= deadline:
            return True
        gain = self.rules.wait_usd_per_hour * (home - there) / _HOUR
        return gain > self.usd(job, k) - self.usd(job, 0)

    def prefer(self, job: int, room: dict[int, int], ahead: float) -> int | None:
        """Return the best pool in whose room a job fits."""
        width = self.setup.width[job]
        fits = [k for k in room if self.can_ever(job, k) and width[k] <= room[k]]
        if self.rules.pool_rule == codes.BURST and 0 not in fits:
            fits = [k for k in fits if k in self.usable(job, ahead)]
        elif self.rules.pool_rule == codes.BURST:
            return 0
        return min(fits, key=lambda k: self.score(job, k), default=None)

    def work_at_home(self, job: int) -> float:
        width = int(self.setup.width[job, 0])
        return self.span(job, 0) * width if width >= 0 else 0.0

    def count_backlog(self) -> None:
        self.backlog = 0.0
        for job in self.running:
            if self.place[job] == 0:
                self.backlog += (self.expects(job) - self.now) * int(self.setup.width[job, 0])

    # ---- the pass ---------------------------------------------------------------------------------------------

    def schedule(self) -> None:
        self.waiting.sort(key=lambda job: (self.key(job), job))
        self.start_heads()
        if not self.waiting:
            return
        queue = list(self.waiting)
        ahead = [0.0]
        for job in queue:
            ahead.append(ahead[-1] + self.work_at_home(job))
        self.order_nodes(queue, ahead)
        promise = self.promise(queue[0])
        if promise is not None:
            k = promise[0]
            self.keep[k] = max(self.keep[k], int(self.setup.width[queue[0], k]))
        if self.rules.backfill == codes.CONSERVATIVE:
            self.plan_all(queue, ahead)
        elif self.rules.backfill != codes.NONE:
            self.backfill(queue, ahead, promise)

    def start_heads(self) -> None:
        while self.waiting:
            self.count_backlog()
            k = self.prefer(self.waiting[0], {k: state.free for k, state in enumerate(self.pools)}, 0.0)
            if k is None:
                return
            self.start(self.waiting[0], k)

    def order_nodes(self, queue: list[int], ahead: list[float]) -> None:
        room = {k: s.free + s.per_node * len(s.pending) for k, s in enumerate(self.pools)}
        for i, job in enumerate(queue):
            k = self.prefer(job, room, ahead[i])
            if k is None:
                could = {k: room[k] + s.headroom * s.per_node for k, s in enumerate(self.pools) if s.headroom > 0}
                k = self.prefer(job, could, ahead[i])
                if k is None:
                    may_wait = self.rules.pool_rule == codes.BURST and self.rules.backfill != codes.NONE
                    if may_wait and self.can_ever(job, 0):
                        continue
                    break
                room[k] += self.order(k, int(self.setup.width[job, k]) - room[k])
            room[k] -= int(self.setup.width[job, k])
        able = [k for k in range(len(self.pools)) if self.can_ever(queue[0], k)]
        if able and all(self.setup.width[queue[0], k] > self.pools[k].capacity for k in able):
            grows = [k for k in able if self.pools[k].pool.is_elastic]
            k = min(grows, key=lambda k: self.score(queue[0], k), default=None)
            if k is not None:
                self.order(k, int(self.setup.width[queue[0], k]) - self.pools[k].capacity)
        for k, state in enumerate(self.pools):
            self.keep[k] = state.capacity - room[k]

    def order(self, k: int, procs: int) -> int:
        state = self.pools[k]
        count = -(-procs // state.per_node)
        state.pending += [self.now + state.pool.provision_s] * count
        return count * state.per_node

    def releases(self, k: int) -> list[tuple[float, int]]:
        """Return when processors of a pool are expected, and how many."""
        ends = [(self.expects(j), int(self.setup.width[j, k])) for j in self.running if self.place[j] == k]
        return sorted(ends + [(time, self.pools[k].per_node) for time in self.pools[k].pending])

    def promise(self, head: int) -> tuple[int, float, int] | None:
        """Return the pool promised to the head, the time, and the extra processors at that time."""
        found: list[tuple[float, tuple[float, float, int]]] = []
        for k in self.usable(head, 0.0):
            free = self.pools[k].free
            for time, procs in self.releases(k):
                free += procs
                if free >= self.setup.width[head, k]:
                    found.append((time, self.score(head, k)))
                    break
        if not found:
            return None
        time, (_, _, k) = min(found)
        if self.rules.backfill == codes.SLACK:
            if math.isnan(self.promised[head]):
                self.promised[head] = time + self.rules.slack * self.span(head, k)
            time = max(time, self.promised[head])
        free = self.pools[k].free + sum(procs for at, procs in self.releases(k) if at <= time)
        return k, time, free - int(self.setup.width[head, k])

    def backfill(self, queue: list[int], ahead: list[float], promise: tuple[int, float, int] | None) -> None:
        place, limit, extra = promise if promise is not None else (-1, 0.0, 0)
        order = list(range(1, len(queue)))
        if self.rules.backfill == codes.EASY_SHORTEST:
            order.sort(key=lambda i: (self.believed(queue[i]), queue[i]))
        for i in order:
            job = queue[i]
            room = {k: state.free for k, state in enumerate(self.pools)}
            if place >= 0 and self.now + self.span(job, place) > limit:
                room[place] = min(room[place], extra)
            k = self.prefer(job, room, ahead[i])
            if k is None:
                continue
            if k == place and self.now + self.span(job, place) > limit:
                extra -= int(self.setup.width[job, k])
            self.start(job, k)

    def plan_all(self, queue: list[int], ahead: list[float]) -> None:
        """Reserve for every job in turn; start those whose reservation is now and that fit."""
        changes: list[list[tuple[float, int]]] = [self.releases(k) for k in range(len(self.pools))]
        base = [state.free for state in self.pools]
        for i, job in enumerate(queue):
            best: tuple[float, tuple[float, float, int]] | None = None
            for k in self.usable(job, ahead[i]):
                time = earliest(changes[k], base[k], self.now, int(self.setup.width[job, k]), self.span(job, k))
                if time is not None and (best is None or (time, self.score(job, k)) < best):
                    best = (time, self.score(job, k))
            if best is None:
                continue
            time, (_, _, k) = best
            width = int(self.setup.width[job, k])
            if self.span(job, k) > 0:
                changes[k] += [(time, -width), (time + self.span(job, k), width)]
            if time <= self.now and width <= self.pools[k].free:
                self.start(job, k)

    # ---- nodes ------------------------------------------------------------------------------------------------

    def flip(self, k: int) -> None:
        state = self.pools[k]
        if state.next_flip() != self.now:
            return
        state.closed = not state.closed
        state.seen = sum(1 for time, _, _ in state.steps() if time <= self.now)
        if not state.closed:
            state.pending = [self.now + state.pool.provision_s] * base_nodes(state.pool)
            return
        for job in sorted(j for j in self.running if self.place[j] == k):
            self.interrupt(job)
        for begin in state.began:
            state.pay(begin, self.now)
        state.began, state.pending, state.idle, state.free = [], [], [], 0

    def come_up(self, k: int) -> None:
        state = self.pools[k]
        for _ in [time for time in state.pending if time <= self.now]:
            state.pending.pop(0)
            state.began.append(self.now)
            state.free += state.per_node

    def sync_idle(self) -> None:
        for state in self.pools:
            count = state.free // state.per_node
            state.idle = state.idle[:count] + [self.now] * (count - len(state.idle))

    def expire_idle(self, then: float) -> None:
        for k, state in enumerate(self.pools):
            if not state.pool.is_elastic:
                continue
            wanted = self.keep.get(k, 0)
            while state.idle and state.idle[0] + state.pool.idle_shutdown_s <= then:
                if len(state.began) <= base_nodes(state.pool) or state.capacity - state.per_node < wanted:
                    break
                since = state.idle.pop(0)
                state.pay(state.began.pop(0), max(since + state.pool.idle_shutdown_s, self.now))
                state.free -= state.per_node

    def close_accounts(self) -> None:
        last = self.now
        for k, state in enumerate(self.pools):
            for begin in state.began:
                state.pay(begin, last)
            self.out.node_s[k], self.out.usd[k] = state.node_s, state.usd


def earliest(changes: list[tuple[float, int]], free: int, now: float, width: int, span: float) -> float | None:
    """Return the first time from which on ``width`` processors are free for ``span`` seconds."""

    def at(time: float) -> int:
        return free + sum(procs for when, procs in changes if when <= time)

    times = sorted({now, *(when for when, _ in changes)})
    for time in times:
        if at(time) >= width and all(at(other) >= width for other in times if time < other < time + span):
            return time
    return None


def replay_reference(setup: Setup) -> tuple[Outcome, int]:
    """Replay a set-up slowly; return what happened and DONE or STUCK."""
    replay = Reference(setup)
    with np.errstate(all="raise"):
        status = replay.run()
    return replay.out, status
