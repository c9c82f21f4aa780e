"""A queue with promises, led from event to event by orders that change, and by users who end jobs early."""

from __future__ import annotations

import random
from typing import Any

import numpy as np

from stretto.core.trace import QueueArrays
from stretto.queues.promises.queue import GIVEN, PromiseQueue, preference


def draw_jobs(rng: random.Random) -> tuple[QueueArrays, int, np.ndarray]:
    """Draw jobs, a machine and slacks."""
    n, num_procs = rng.randint(4, 10), rng.choice([4, 8])
    submit = np.sort(np.array([float(rng.randint(0, 40)) for _ in range(n)]))
    estimate = np.array([float(rng.randint(2, 30)) for _ in range(n)])
    run = np.array([float(rng.randint(1, int(value))) for value in estimate])
    ints = np.int32
    jobs = QueueArrays(
        submit=submit,
        run=run,
        estimate=estimate,
        procs=np.array([rng.randint(1, num_procs) for _ in range(n)], ints),
        user=np.zeros(n, ints),
        deadline=np.full(n, np.inf),
        gpus=np.zeros(n, ints),
        memory=np.zeros(n),
        num_parents=np.zeros(n, ints),
        child_ptr=np.zeros(n + 1, ints),
        child=np.zeros(0, ints),
    )
    slack = np.array([rng.choice([0.0, 3.0, 15.0, 60.0]) for _ in range(n)])
    return jobs, num_procs, slack


class PromisedQueue:
    """The queue and what it is held to."""

    def __init__(self, world: Any, rng: random.Random) -> None:
        self.world, self.rng = world, rng
        self.jobs, self.num_procs, slack = draw_jobs(rng)
        self.queue = PromiseQueue.of(self.jobs, self.num_procs, slack)
        self.due: dict[int, float] = {}
        self.begin_s = world.clock.now_s
        self.is_done = False

    def cancel_one(self) -> None:
        """Have a user end a job that runs."""
        state, now = self.queue.state, self.queue.now_s
        running = [
            job
            for job in range(len(self.jobs.run))
            if state.start[job] >= 0 and state.start[job] + self.jobs.run[job] > now + 1.0
        ]
        if running:
            job = self.rng.choice(running)
            self.world.clock.tell(f"a user ends job {job} of the queue with promises")
            self.jobs.run[job] = now + 1.0 - state.start[job]

    def check(self) -> None:
        """Check promises and the machine at this moment."""
        state, now, need = self.queue.state, self.queue.now_s, self.world.clock.need
        running = [
            j for j in range(len(self.jobs.run)) if 0 <= state.start[j] <= now < state.start[j] + self.jobs.run[j]
        ]
        used = int(self.jobs.procs[running].sum())
        need(used <= self.num_procs, f"the queue runs {used} processors of {self.num_procs}")
        for job in range(len(self.jobs.run)):
            if self.jobs.submit[job] > now:
                continue
            due = self.due.setdefault(job, float(state.due[job]))
            need(due == state.due[job], f"job {job} was promised a start by {due}, and now by {state.due[job]}")
            start = state.start[job]
            need(start < 0 or self.jobs.submit[job] <= start <= due, f"job {job} started at {start}, due by {due}")
            need(start >= 0 or now <= due, f"job {job} still waits after its promised start")


def queue_main(world: Any) -> None:
    """Lead the queue through all its events."""
    led: PromisedQueue = world.queue
    queue, rng = led.queue, led.rng
    order = preference(GIVEN)
    while (at_s := queue.next_event_s()) < np.inf:
        world.clock.sleep(max(0.0, led.begin_s + at_s - world.clock.now_s))
        world.clock.op("an event of the queue with promises")
        queue.happen(order)
        for job in rng.sample(queue.waiting.tolist(), len(queue.waiting)):
            if rng.random() < 0.5:
                queue.start(int(job))
        queue.state.key[:] = [rng.random() for _ in queue.state.key]
        if rng.random() < 0.3:  # what if: a copy goes its own way
            what_if = queue.copy()
            what_if.advance(preference(GIVEN), queue.now_s + 50.0)
        queue.propose(order)
        queue.settle()
        led.check()
    started = np.asarray(queue.state.start) >= 0
    world.clock.need(bool(np.all(started)), "a job of the queue with promises never started")
    led.is_done = True
