"""Run a stream of jobs on a simulated rack: decisions, estimated load and real load at every step."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from stretto.core.csr import Floats
from stretto.errors import InvalidInput
from stretto.racks.dispatch import DispatchFunction, RackDispatcher, RackEpisode, dispatcher_of
from stretto.racks.kernels.state import CONFIGURING, DONE, IDLE
from stretto.racks.kernels.time import refresh
from stretto.racks.simulator import RackBatch
from stretto.racks.symphony.cases import Case
from stretto.racks.symphony.cases import case as case_named
from stretto.racks.symphony.scheduler import SymphonyDispatcher, training_state
from stretto.reports.racks.belief import BeliefSample, record_sample
from stretto.reports.racks.topology import TOPOLOGY, rack_topology
from stretto.reports.racks.watched import TaskBar, Watched
from stretto.reports.strict_json import packed
from stretto.runlog import Run

#: Held-out streams of each case, as many as trainings are judged on.
NUM_STREAMS = 16


class RackShow:
    """One rack with one stream of jobs; ``moments`` simulates it and yields a sample whenever time has passed.

    Parameters
    ----------
    by
        A name of ``catalog.DISPATCHERS``, a dispatcher or a function of a ``RackView``.
    weights
        A file with the weights of ``symphony``, in place of those that come with Stretto.
    """

    def __init__(
        self,
        case: str | Case,
        by: str | RackDispatcher | DispatchFunction,
        *,
        stream: int,
        seed: int,
        weights: str | None = None,
    ) -> None:
        dispatcher = dispatcher_of(by)
        if weights is not None:
            if not isinstance(dispatcher, SymphonyDispatcher):
                raise InvalidInput(f"{by!r} takes no weights; only symphony does", field="--weights")
            dispatcher = SymphonyDispatcher(weights)
        if not 0 <= stream < NUM_STREAMS:
            raise InvalidInput(f"{stream} is not in 0..{NUM_STREAMS - 1}", field="--stream")
        named = case_named(case) if isinstance(case, str) else case
        world = named.world(seed=None, num_instances=NUM_STREAMS)  # streams that nothing is trained on
        self.case, self.stream = named.name, stream
        self.by = by if isinstance(by, str) else getattr(dispatcher, "name", type(dispatcher).__name__)
        self.model = world.model
        self.batch = RackBatch(world.model, world.streams, 1, seed=seed, counters=world.counters, params=world.belief)
        self.watched = Watched()
        #: Of Symphony: whether its weights are untrained, or for how long they were trained.
        self.weights: str | None = None
        if isinstance(dispatcher, SymphonyDispatcher):
            self.weights = training_state(dispatcher.about())
        self._dispatcher, self._seed = dispatcher, seed
        self._kernels = [spec.name for spec in world.model.kernels]

    @property
    def label(self) -> str:
        """The dispatcher's name, with its weights where it has any."""
        return self.by if self.weights is None else f"{self.by} ({self.weights})"

    def moments(self) -> Iterator[tuple[BeliefSample | None, list[TaskBar]]]:
        """Simulate; whenever time has passed, yield a sample and the tasks that ended since; at last no sample."""
        b = self.batch
        episode = RackEpisode(b, self._dispatcher, stream=self.stream, seed=self._seed)
        told_s = -1.0
        is_told = np.zeros(b.streams.kernel.shape[1], np.bool_)
        while not episode.is_over:
            if b.state.now_s[0] > told_s:
                told_s = float(b.state.now_s[0])
                sample = self._sample()
                self.watched.see(sample)
                yield sample, self._ended(is_told)
            episode.step()
            self.watched.num_decisions += 1
            self.watched.num_blind += episode.decider.reason is not None
        arrival = b.streams.arrival_s[self.stream]
        self.watched.flow_s = (b.state.job_end_s[0] - arrival)[np.isfinite(arrival)].tolist()
        yield None, self._ended(is_told)

    def _sample(self) -> BeliefSample:
        b = self.batch
        refresh(self.model.arrays, b.state, 0)
        kernel = b.streams.kernel[self.stream]
        running = [
            None if task == IDLE else "reconfiguring" if task == CONFIGURING else self._kernels[kernel[task]]
            for task in b.state.task[0].tolist()
        ]
        return BeliefSample(
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

    def _ended(self, is_told: NDArray[np.bool_]) -> list[TaskBar]:
        """Return the tasks that have ended and were not reported yet."""
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
    """Keep the machines with the run; samples refer to their parts."""
    run.attach(TOPOLOGY, packed(rack_topology(show.model)))


def record_moment(run: Run, sample: BeliefSample | None, ended: Sequence[TaskBar]) -> None:
    """Keep a sample, and the tasks that ended since the last one."""
    with run.batch():
        for bar in ended:
            run.record("task-finished", bar.name, device=bar.processor, start_s=bar.start_s, end_s=bar.end_s)
        if sample is not None:
            record_sample(run, sample)
