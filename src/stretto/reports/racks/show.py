"""Play a stream of jobs on a rack and watch: who decides, what is believed of hidden load, and what it really was."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np

from stretto.core.csr import Floats
from stretto.core.kernels.rng import seeded
from stretto.errors import InvalidInput, MissingExtra, UnknownName
from stretto.racks.kernels.episode import restart, to_decision
from stretto.racks.kernels.moves import act
from stretto.racks.kernels.oracle import BELIEVED, BLIND, RAW, fill_raw_pressure, fill_true_pressure
from stretto.racks.kernels.rules import choose
from stretto.racks.kernels.state import CONFIGURING, DONE, IDLE
from stretto.racks.kernels.time import refresh
from stretto.racks.paragon import paragon_durations
from stretto.racks.rules import RULES
from stretto.racks.simulator import RackBatch
from stretto.racks.symphony.scheduler import SymphonyScheduler, load_policy, pretrained
from stretto.reports.racks.belief import Look, record_look
from stretto.reports.racks.topology import TOPOLOGY, rack_topology
from stretto.reports.racks.watched import TaskBar, Watched
from stretto.reports.strict_json import packed
from stretto.runlog import Run

if TYPE_CHECKING:
    from stretto.racks.symphony.trainer import World

LEARNED = "symphony"
#: Beside the rules that any scheduler could follow, there are those that know what only a simulation can.
DECIDERS = (LEARNED, *RULES)
#: Held-out streams of each case, as many as trainings are judged on.
NUM_STREAMS = 16


class RackShow:
    """One rack with one stream; ``moments`` plays it and yields a look at every decision that time led to."""

    def __init__(self, case: str, by: str, *, stream: int, seed: int, weights: str | None = None) -> None:
        if by not in DECIDERS:
            raise UnknownName("rule for racks", by, DECIDERS)
        if weights is not None and by != LEARNED:
            raise InvalidInput(f"{by!r} takes no weights; they are for --by {LEARNED}", field="--weights")
        if not 0 <= stream < NUM_STREAMS:
            raise InvalidInput(f"{stream} is not in 0..{NUM_STREAMS - 1}", field="--stream")
        world = _world(case)
        self.case, self.by, self.stream = case, by, stream
        self.model = world.model
        self.batch = RackBatch(world.model, world.streams, 1, seed=seed, counters=world.counters, params=world.belief)
        self.watched = Watched()
        self._random = seeded(seed, stream)
        self._decide = self._learned(weights) if by == LEARNED else self._rule(by, seed)
        self._kernels = [spec.name for spec in world.model.kernels]

    def _learned(self, path: str | None) -> Callable[[], int]:
        policy, _ = load_policy(path, self.batch) if path is not None else pretrained(self.batch)
        self.scheduler = SymphonyScheduler(policy, self.batch)
        return self.scheduler.decide

    def _rule(self, name: str, seed: int) -> Callable[[], int]:
        rule, batch, arrays = RULES[name], self.batch, self.model.arrays
        duration = paragon_durations(self.model, seed) if rule.is_profiled else arrays.duration_s
        pressure = np.zeros(arrays.demand.shape[2])

        def decide() -> int:
            if rule.knowledge == RAW:
                fill_raw_pressure(batch.counters, batch.readings, 0, pressure)
            elif rule.knowledge == BELIEVED:
                pressure[:] = batch.belief.pressure[0]
            elif rule.knowledge != BLIND:
                fill_true_pressure(arrays, batch.streams, batch.state, 0, pressure)
            known = (arrays, batch.streams, batch.state, 0, rule.code, duration, pressure)
            return int(choose(*known, batch.mask[0], self._random))

        return decide

    def moments(self) -> Iterator[tuple[Look | None, list[TaskBar]]]:
        """Play; yield what is believed and what has ended since, whenever time has passed, and at last what ended."""
        b, arrays = self.batch, self.model.arrays
        restart(arrays, b.streams, b.state, b.readings, b.belief, 0, self.stream)
        is_over, told_s = self._go_on(is_waiting=False), -1.0
        is_told = np.zeros(b.streams.kernel.shape[1], np.bool_)
        while not is_over:
            if b.state.now_s[0] > told_s:
                told_s = float(b.state.now_s[0])
                look = self._look()
                self.watched.see(look)
                yield look, self._ended(is_told)
            action = self._decide()
            self.watched.num_decisions += 1
            self.watched.num_blind += self.by == LEARNED and self.scheduler.reason is not None
            act(arrays, b.streams, b.state, 0, action)
            is_over = self._go_on(is_waiting=action == self.model.num_actions - 1)
        arrival = b.streams.arrival_s[self.stream]
        self.watched.flow_s = (b.state.job_end_s[0] - arrival)[np.isfinite(arrival)].tolist()
        yield None, self._ended(is_told)

    def _go_on(self, *, is_waiting: bool) -> bool:
        b = self.batch
        return bool(
            to_decision(
                self.model.arrays,
                b.streams,
                b.counters,
                b.state,
                b.readings,
                b.belief,
                b.params,
                0,
                self._random,
                b.mask[0],
                is_waiting,
                True,
            )
        )

    def _look(self) -> Look:
        b = self.batch
        refresh(self.model.arrays, b.state, 0)
        kernel = b.streams.kernel[self.stream]
        running = [
            None if task == IDLE else "reconfiguring" if task == CONFIGURING else self._kernels[kernel[task]]
            for task in b.state.task[0].tolist()
        ]
        return Look(
            float(b.state.now_s[0]),
            b.belief.load[0].copy(),
            b.belief.load_sd[0].copy(),
            self._counters(),
            b.state.load[0].copy(),
            running,
        )

    def _counters(self) -> Floats:
        """Return the mean of the traffic counters of each resource as they were read last, NaN where there is none."""
        b = self.batch
        total, num = np.zeros(len(self.model.resources)), np.zeros(len(self.model.resources))
        counts = (b.counters.exponent == 1.0) & np.isfinite(b.readings.mean[0]) & (b.readings.age_s[0] < 60.0)
        np.add.at(total, b.counters.resource[counts], b.readings.mean[0][counts])
        np.add.at(num, b.counters.resource[counts], 1.0)
        return np.where(num > 0, total / np.maximum(num, 1.0), np.nan)

    def _ended(self, is_told: np.ndarray) -> list[TaskBar]:
        """Return the tasks that have ended and were not told of yet."""
        state, kernel, job = self.batch.state, self.batch.streams.kernel[self.stream], self.batch.streams.job
        new = np.flatnonzero((state.status[0] == DONE) & ~is_told)
        is_told[new] = True
        return [
            TaskBar(
                f"job{int(job[self.stream, task])}.{self._kernels[kernel[task]]}.{task}",
                self.model.processors[int(state.proc[0, task])],
                float(state.start_s[0, task]),
                float(state.end_s[0, task]),
            )
            for task in new.tolist()
        ]


def record_rack(run: Run, show: RackShow) -> None:
    """Keep the machines of a show with its run; what is believed later is about their parts."""
    run.attach(TOPOLOGY, packed(rack_topology(show.model)))


def record_moment(run: Run, look: Look | None, ended: Sequence[TaskBar]) -> None:
    """Keep what is believed at a moment, and what has ended since the one before."""
    with run.batch():
        for bar in ended:
            run.record("task-finished", bar.name, device=bar.processor, start_s=bar.start_s, end_s=bar.end_s)
        if look is not None:
            record_look(run, look)


def _world(case: str) -> World:
    """Return a case with the streams that nothing is trained on."""
    try:
        from stretto.racks.symphony.cases import case as case_named
    except ImportError as error:
        if (error.name or "").partition(".")[0] not in ("jax", "jaxlib", "optax", "equinox"):
            raise
        raise MissingExtra(str(error.name), "learn", "a rack") from None
    return case_named(case).world(seed=None, num_instances=NUM_STREAMS)
