"""A steering layer over the simulated Slurm: the real command, its guard process, and what both are held to."""

from __future__ import annotations

import json
import random
from dataclasses import dataclass, field
from typing import Any

from stretto.api.options.slurm import SteerOptions
from stretto.engines.slurm.steer.marks import Mark
from stretto.engines.slurm.steer.steer import Step
from stretto.engines.slurm.steer.tags import tag_of
from stretto.queues.live_order import StrategyOrder
from stretto.queues.view import QueueDecision, QueueView

from .boundaries import api_steer
from .resource_manager import VirtualJob

BUDGET_S = 1.0
#: The partition that is steered where only one is; jobs may also name the other one, or both.
STEERED = "main"


@dataclass(frozen=True)
class SteeringSpec:
    """How a queue is steered, drawn with the seed of the history."""

    mode: str
    strategy: str
    promises: bool
    depth: int
    interval_s: float
    num_cpus: int
    releases_recompute: bool
    num_jobs: int
    rights: str
    partition: str | None

    @property
    def options(self) -> SteerOptions:
        backfill, slack = ("promise", "20s+1e") if self.promises else (None, None)
        return SteerOptions(self.mode, f"{self.interval_s:g}s", f"{BUDGET_S:g}s", self.depth, backfill, slack)


def draw_steering(rng: random.Random) -> SteeringSpec:
    """Draw a steering layer."""
    return SteeringSpec(
        mode=rng.choice(["sitefactor", "sitefactor", "priority"]),
        strategy=rng.choice(["fcfs", "sjf", "saf"]),
        promises=rng.random() < 0.5,
        depth=rng.choice([2, 4, 200]),
        interval_s=rng.choice([4.0, 7.0]),
        num_cpus=rng.choice([4, 8]),
        releases_recompute=rng.random() < 0.6,
        num_jobs=rng.randint(2, 7),
        rights=rng.choice(["all", "all", "all", "no comments", "no reservations"]),
        partition=rng.choice([None, None, STEERED]),
    )


@dataclass
class FaultyOrder:
    """An order of the catalog that raises, hangs or answers nonsense where the history says so."""

    world: Any
    inner: StrategyOrder
    num_decisions: int = 0
    is_warm: bool = False

    def decide(self, view: QueueView) -> QueueDecision:
        if not self.is_warm:  # compiling is no part of a decision
            self.is_warm = True
            return self.inner.decide(view)
        self.num_decisions += 1
        mood = self.world.moods.pop(("order", self.num_decisions), "")
        if mood == "raises":
            raise ZeroDivisionError("a faulty order")
        if mood == "hangs":
            self.world.clock.sleep(25.0)
        if mood == "slow":
            self.world.clock.sleep(0.7)
        found = self.inner.decide(view)
        if mood == "nonsense":
            return QueueDecision((*found.order, 0), "nonsense")
        return QueueDecision(found.order[:-1], "nothing") if mood == "nothing" else found


@dataclass
class SteeringTruth:
    """What steering is held to.

    Attributes
    ----------
    latest_start_s
        Promised latest starts, by job: they never move while the job waits.
    """

    spec: SteeringSpec
    latest_start_s: dict[int, float] = field(default_factory=dict)
    num_faults: int = -1
    num_steps: int = 0
    is_off: bool = False


def steer_main(world: Any) -> None:
    """What the process of a steerer does."""
    spec: SteeringSpec = world.steering.spec
    order = FaultyOrder(world, StrategyOrder(spec.strategy))
    order.num_decisions = world.steering.num_steps
    world.steering.num_faults = -1
    api_steer.steer(
        order,
        apply=True,
        partition=spec.partition,
        options=spec.options,
        on_step=lambda step: check_step(world, step),
        on_notice=world.clock.tell,
    )


def off_main(world: Any) -> None:
    """What ``--off`` does in a process of its own."""
    api_steer.steer_off(on_notice=world.clock.tell)


def on_main(world: Any) -> None:
    """What ``--on`` does."""
    api_steer.steer_on(on_notice=world.clock.tell)


def check_step(world: Any, step: Step) -> None:
    """Check one look of the steerer at the queue."""
    truth, manager, need = world.steering, world.manager, world.clock.need
    truth.num_steps += 1
    need(len(set(step.order)) == len(step.order), "an order names a job twice")
    need(step.decide_s <= BUDGET_S + 1e-6, f"a decision took {step.decide_s:.2f} s of {BUDGET_S} s")
    _check_promises(world, step)
    _check_life(world)
    others = [number for number in step.order if not _is_ours(world, manager.jobs.get(number))]
    need(not others, f"jobs {others} are ordered, which are in another partition")
    faults = manager.num_faults + world.clock.num_failed_ops
    is_clean, truth.num_faults = faults == truth.num_faults, faults
    # A steerer that is not shown any values cannot know which of them a restart took away.
    is_blind = manager.num_restarts > 0 and world.clock.now_s < manager.blind_until_s + truth.spec.interval_s
    if not is_clean or is_blind:
        return
    fair = {
        number: job for number, job in manager.jobs.items() if job.state == "PENDING" and not _is_moving(world, job)
    }
    if truth.spec.partition is not None and manager.rights != "all":
        # Who sees no tags leaves jobs of several partitions to the steerer of the first.
        fair = {number: job for number, job in fair.items() if "," not in job.partition}
    if step.fallback or truth.spec.partition is not None:
        for number, job in fair.items():
            if not step.fallback and _is_ours(world, job):
                continue
            is_own = manager.value(job) == manager.own_value(job)
            why = "Slurm's own order applies" if step.fallback else "it is in another partition"
            need(is_own, f"job {number} has a label of the steerer although {why}")
    if step.fallback:
        return
    ordered = [number for number in step.order if number not in step.left_alone][: truth.spec.depth]
    labels = [_label(world, fair[number]) for number in ordered if number in fair and not fair[number].is_held]
    need(all(a > b for a, b in zip(labels, labels[1:])), f"jobs {ordered} have labels {labels}, which do not fall")


def _label(world: Any, job: VirtualJob) -> int:
    value, own = world.manager.value(job), world.manager.own_value(job)
    return (value or 0) - (own or 0) if world.manager.mode == "sitefactor" else value or 0


def _is_ours(world: Any, job: VirtualJob | None) -> bool:
    """Whether a job is in the partition that is steered; of one that was moved just now nobody can say."""
    wanted = world.steering.spec.partition
    return wanted is None or job is None or wanted in job.partition.split(",") or _is_moving(world, job)


def _is_moving(world: Any, job: VirtualJob) -> bool:
    """Whether somebody has changed a job so lately that the steerer may not have seen it."""
    return job.is_raced or job.is_forgotten or job.is_held != job.own_hold or world.clock.now_s - job.changed_s < 60.0


def _check_life(world: Any) -> None:
    """Check that a steerer at work has given signs of life, so that nobody takes it for dead."""
    for name in world.manager.reservations:
        mark = Mark.parse(name)
        if mark is not None and mark.kind == "steering" and mark.pid == world.clock.process.pid:
            silent_s = world.clock.now_s - world.manager.beats[name]
            world.clock.need(silent_s <= mark.lease_s, f"a steerer at work gave no sign of life for {silent_s:.0f} s")


def _check_promises(world: Any, step: Step) -> None:
    truth, need = world.steering, world.clock.need
    for number, latest in step.latest_start_s.items():
        before = truth.latest_start_s.setdefault(number, latest)
        need(
            abs(before - latest) < 0.01,
            f"job {number} was promised a start by {before:.1f}, and now by {latest:.1f}",
        )
    counts = step.promises
    if counts is not None:
        need(counts.kept + counts.broken <= counts.given, f"{counts}: more promises kept or broken than given")


def check_own_order(world: Any) -> None:
    """Check that no label is left: every job has what others have set."""
    manager, need = world.manager, world.clock.need
    for number, job in manager.jobs.items():
        if job.is_ended or job.is_forgotten or (job.state == "RUNNING" and manager.mode == "priority"):
            continue
        value, own = manager.value(job), manager.own_value(job)
        if job.is_raced:
            need(value in job.past_own, f"job {number} is left with {value}, which nobody but the steerer has set")
        else:
            need(value == own, f"job {number} is left with {value} where others have set {own}")
        need(job.is_raced or job.is_held == job.own_hold, f"job {number} is left on hold by the steerer")
        is_plain = tag_of(job.comment) is None if job.is_raced else job.comment == job.own_comment
        need(is_plain, f"job {number} is left with the comment {job.comment!r}")
    _check_marks(world)


def _check_marks(world: Any) -> None:
    """Check that nobody has left a claim or a file of labels, and that steering is off for everybody."""
    folder = world.home / "steer-slurm"
    names = [*world.manager.reservations, *(json.loads(path.read_text())["name"] for path in folder.glob("*/*.mark"))]
    left = [mark for name in names if (mark := Mark.parse(name)) is not None]
    for mark in left:
        world.clock.need(mark.kind == "off", f"a mark of kind {mark.kind} is left: {mark.text()}")
    world.clock.need(bool(left), "steering was switched off, and nothing says so")
