"""A run of a task graph: the real driver, dispatchers, session and run log on virtual devices that fail."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from stretto.core.cluster import Cluster, Device
from stretto.core.graph import TaskGraph
from stretto.core.plan import Plan
from stretto.core.problem import Problem
from stretto.engines.driver.dispatch import Dispatcher, GreedyDispatcher, LateDispatcher, View
from stretto.engines.engine import RunOptions, RunResult
from stretto.engines.event_writer import finished_before
from stretto.engines.outputs import digest
from stretto.engines.rented_nodes import RentedNodes
from stretto.engines.session import run_recorded
from stretto.engines.simulated import SimulatedEngine
from stretto.engines.work import Work
from stretto.runlog import RunLog
from stretto.testing.engine_checks import expected_outputs, random_plan

from .devices import DECISION_S, VirtualEngine
from .rentals import check_rentals, draw_rentals

_GB = 1e9


@dataclass(frozen=True)
class RunSpec:
    """What is run, drawn with the seed of the history.

    Attributes
    ----------
    logs_at_worker
        Whether the end of a task is logged where it ran, as the engine ``local`` does.
    output_bytes
        Sizes of outputs, for devices whose memory is limited.
    """

    work: Work
    plan: Plan
    cluster: Cluster
    dispatcher: str
    num_queued: int
    keeps_data: bool
    counts_memory: bool
    moves_data: bool
    logs_at_worker: bool
    is_simulated: bool
    discipline: str | None
    max_attempts: int
    output_bytes: tuple[int, ...]
    makes_copies: bool
    rented: RentedNodes | None


def draw_run(rng: random.Random) -> RunSpec:
    """Draw a small run."""
    numbers = np.random.default_rng(rng.getrandbits(32))
    n, m = rng.randint(3, 9), rng.randint(1, 3)
    pairs = [(u, v) for v in range(n) for u in range(v) if rng.random() < 1.6 / max(2, v)]
    packs, is_limited, is_simulated = rng.random() < 0.35, rng.random() < 0.4, rng.random() < 0.1
    own = np.array([rng.choice([0, 1, 2, 3]) for _ in range(n)]) * (_GB if packs else 10.0) * is_limited
    outputs = tuple(rng.choice([0, 10, 40]) for _ in range(n))
    graph = TaskGraph.from_edges(
        numbers.integers(1, 6, n).astype(float),
        np.array([u for u, _ in pairs], dtype=np.int64),
        np.array([v for _, v in pairs], dtype=np.int64),
        numbers.integers(0, 3, len(pairs)).astype(float),
        name="history",
        memory_bytes=own if is_limited else None,
        cores=np.array([rng.choice([0.0, 1.0, 1.0, 2.0]) for _ in range(n)]) if packs and is_limited else None,
    )
    # One task always fits beside all outputs, so that no run may end for want of memory.
    limit = sum(outputs) + rng.choice([1.0, 1.5]) * (float(own.max()) + max(outputs))
    limits = {"memory_bytes": limit} if is_limited and not is_simulated else {}
    devices = tuple(Device(f"d{i}", "cpu", float(numbers.choice([1.0, 2.0])), **limits) for i in range(m))
    cluster = Cluster(devices, np.zeros((m, m)), np.full((m, m), 4.0))
    if packs:
        cluster = Cluster.parse(f"node:{m}*2c4GB")
    plan = random_plan(numbers, graph, cluster)
    return RunSpec(
        work=Work.timed(graph),
        plan=plan,
        cluster=cluster,
        # The simulator trusts dispatchers: a time limit would make its results depend on the machine.
        dispatcher=rng.choice(["plan", "plan", "greedy", "late"] + ([] if is_simulated else ["faulty", "faulty"])),
        num_queued=rng.choice([0, 0, 1, 2]),
        keeps_data=(keeps_data := rng.random() < 0.6),
        # Only engines whose data outlives its device keep an account of memory.
        counts_memory=keeps_data and rng.random() < 0.6,
        moves_data=rng.random() < 0.4,
        logs_at_worker=rng.random() < 0.5,
        is_simulated=is_simulated,
        discipline=rng.choice([None, None, "sequence", "work-conserving"]),
        max_attempts=rng.choice([1, 2, 6]),
        output_bytes=outputs,
        makes_copies=rng.random() < 0.6,
        rented=draw_rentals(rng, plan, cluster) if rng.random() < 0.4 else None,
    )


@dataclass
class FaultyDispatcher:
    """Decides like another dispatcher, except where the history has it raise, hang or answer nonsense."""

    world: Any
    inner: Dispatcher = field(default_factory=GreedyDispatcher)
    num_decisions: int = 0

    def choose(self, view: View) -> Sequence[tuple[int, int]]:
        self.num_decisions += 1
        self.world.check_view(view)
        mood = self.world.moods.pop(("dispatcher", self.num_decisions), "")
        if mood == "raises":
            raise ZeroDivisionError("a faulty dispatcher")
        if mood == "hangs":
            self.world.clock.sleep(40.0)
        if mood == "nonsense":
            first, wrong = view.ready[0], len(view.is_alive)
            return [(first, wrong)] if self.num_decisions % 2 else [(first, 0), (first, 0)]
        if mood == "nothing":
            return []
        return self.inner.choose(view)


class RunTruth:
    """What the world knows about a run, over all its processes."""

    def __init__(self, world: Any, spec: RunSpec) -> None:
        self.world, self.spec = world, spec
        self.problem = Problem.of(spec.work.graph, spec.cluster)
        self.expected = expected_outputs(spec.work)
        self.committed: set[int] = set()  # ends that are on disk and were reported
        self.num_seen: int = 0  # events of the run in the log
        self.run_id: str | None = None
        self.status: str | None = None
        self.is_cancelled = False
        self.names = {spec.work.graph.task_name(task): task for task in range(spec.work.graph.num_tasks)}


def run_main(world: Any) -> None:
    """What the process of a run does: start the run, or resume it where the log has one."""
    truth: RunTruth = world.truth
    spec = truth.spec
    with RunLog.open() as log:
        known = log.runs("run", limit=1)
        check_log(world, log)
        engine = SimulatedEngine() if spec.is_simulated else VirtualEngine(world)
        options = RunOptions(
            discipline=spec.discipline, max_attempts=spec.max_attempts, keep="all", decision_s=DECISION_S
        )
        rented = spec.rented.begin(()) if spec.rented is not None and spec.dispatcher == "plan" else None
        if rented is not None:
            options = replace(options, follow=rented.follow)

        def on_begin(run_id: str, num_done: int) -> None:
            world.clock.tell(f"run {run_id[-6:]}: {num_done} tasks done before")
            if rented is not None:
                rented.skip(finished_before(log, run_id, spec.work))

        makers = {
            "greedy": GreedyDispatcher,
            "late": lambda: LateDispatcher(num_queued=spec.num_queued),
            "faulty": lambda: FaultyDispatcher(world),
        }
        session = run_recorded(
            log,
            engine,
            spec.work,
            spec.plan,
            spec.cluster,
            options,
            settings={},
            resume=known[0].id if known else None,
            dispatcher=None if spec.dispatcher == "plan" else makers[spec.dispatcher](),
            on_begin=on_begin,
        )
        truth.status = session.result.status
        check_log(world, log)
        check_result(world, session.result)
        if rented is not None and session.result.status == "done":
            check_rentals(world, rented, session.result, log.events(session.run_id))


def check_log(world: Any, log: RunLog) -> None:
    """Check what the log has of the run: whole, in order, and nothing that was committed is missing."""
    truth, need = world.truth, world.clock.need
    infos = log.runs("run", limit=2)
    need(len(infos) <= 1, "there are two runs where one was resumed")
    if not infos:
        need(not truth.committed, "a run with committed ends is not in the log")
        return
    events = log.events(infos[0].id)
    need([event.seq for event in events] == list(range(1, len(events) + 1)), "events of the run log are not in order")
    need(infos[0].num_events == len(events), "the run log counts other events than it has")
    need(len(events) >= truth.num_seen, f"the log had {truth.num_seen} events, and now {len(events)}")
    truth.num_seen = len(events)


def check_result(world: Any, result: RunResult) -> None:
    """Check the result of a run that has ended."""
    truth, need = world.truth, world.clock.need
    if result.status != "done":
        return
    for task, value in truth.expected.items():
        if bool(result.is_finished[task]):
            need(result.digests[task] == digest(value), f"the output of task {task} has another digest")
    with RunLog.open() as log:
        run_id = log.runs("run", limit=1)[0].id
        ends: dict[int, int] = {}
        for event in log.events(run_id, kinds=["task-finished"]):
            task = truth.names[event.subject]
            ends[task] = ends.get(task, 0) + 1
        if not world.is_log_incomplete:
            need(sorted(ends) == sorted(truth.expected), "a run that is done lacks the end of a task")
        if truth.spec.keeps_data and not truth.spec.is_simulated:
            need(max(ends.values(), default=1) == 1, "a task has ended twice")
