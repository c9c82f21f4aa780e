"""Dispatchers choose what an idle processor of a rack does next: a name, a rule, a learned policy or a plain function.

A function takes a :class:`RackView` and returns one of its ``choices``. It sees what a real scheduler could know:
measured durations, what runs, and the belief about hidden load; never the true load or the exact work of a task.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from stretto import catalog, registry
from stretto.core.kernels.rng import seeded
from stretto.errors import InvalidInput
from stretto.racks.belief.recording import Observer, observed_decision
from stretto.racks.kernels.episode import restart, to_decision
from stretto.racks.kernels.moves import act
from stretto.racks.kernels.rules import expected_speed
from stretto.racks.kernels.state import CONFIGURING, IDLE
from stretto.racks.simulator import RackBatch

#: The state of a random generator of compiled code.
RandomState = NDArray[np.uint64]


@dataclass(frozen=True)
class RackChoice:
    """One action that is possible now.

    Attributes
    ----------
    action
        Its number, as in ``racks/kernels/moves.py``.
    kernel, processor
        What would run where; empty for ``wait``.
    alone_s, expected_s
        Seconds until the kernel ends there, reconfiguration included: alone on its machine, and beside the load that is
        believed. Infinite for ``wait``, so that the least of them is something to do.
    job, job_tasks_left, path_s
        The job of the kernel's next task by order of arrival, how many of its tasks have not ended, and the longest
        path from the task to the end of the job in mean seconds.
    """

    action: int
    kind: Literal["execute", "reconfigure", "wait"]
    kernel: str = ""
    processor: str = ""
    alone_s: float = math.inf
    expected_s: float = math.inf
    job: int = -1
    job_tasks_left: int = 0
    path_s: float = 0.0


@dataclass(frozen=True, eq=False)
class RackView:
    """What a dispatcher knows at a decision.

    Attributes
    ----------
    num_decisions
        Decisions made before this one; 0 at the start of a stream.
    choices
        The valid actions; a dispatcher returns one of them.
    running
        The kernel on each busy processor, or ``reconfiguring``.
    ready
        Tasks that could start, by kernel.
    utilization, utilization_sd
        Believed mean and standard deviation for each shared part, as a share of its capacity.
    """

    now_s: float
    num_decisions: int
    choices: tuple[RackChoice, ...]
    running: Mapping[str, str]
    ready: Mapping[str, int]
    utilization: Mapping[str, float]
    utilization_sd: Mapping[str, float]


#: A dispatcher as a plain function.
DispatchFunction = Callable[[RackView], RackChoice]


class Decider(Protocol):
    """Decides in the first rack of a batch."""

    @property
    def reason(self) -> str | None:
        """Why a fallback decides, None while the dispatcher itself does."""

    def decide(self) -> int:
        """Return an action that is valid now."""


@runtime_checkable
class RackDispatcher(Protocol):
    """What ``catalog.DISPATCHERS`` names."""

    @property
    def summary(self) -> str:
        """One line for ``stretto list``."""

    def decider(self, batch: RackBatch, *, seed: int, random: RandomState) -> Decider:
        """Get ready for one stream on the first rack of a batch; ``random`` is shared with the noise of counters."""


@dataclass(frozen=True)
class FunctionDispatcher:
    """A plain function as a dispatcher."""

    function: DispatchFunction

    @property
    def name(self) -> str:
        return getattr(self.function, "__name__", type(self.function).__name__)

    @property
    def summary(self) -> str:
        return f"the function {self.name}"

    def decider(self, batch: RackBatch, *, seed: int, random: RandomState) -> Decider:
        return _FunctionDecider(self, batch)


class _FunctionDecider:
    reason: str | None = None

    def __init__(self, dispatcher: FunctionDispatcher, batch: RackBatch) -> None:
        self.dispatcher, self.batch = dispatcher, batch
        self._num_decisions = 0

    def decide(self) -> int:
        view = rack_view(self.batch, self._num_decisions)
        self._num_decisions += 1
        chosen = self.dispatcher.function(view)
        if not isinstance(chosen, RackChoice) or chosen not in view.choices:
            raise InvalidInput(
                f"{self.dispatcher.name} returned {chosen!r} at {view.now_s:g} s; return one of the "
                f"{len(view.choices)} entries of view.choices",
                field="dispatcher",
            )
        return chosen.action


def dispatcher_of(given: str | RackDispatcher | DispatchFunction) -> RackDispatcher:
    """Return a dispatcher by name, as it is, or made from a function."""
    if isinstance(given, str):
        found: RackDispatcher = registry.lookup("dispatcher", given, catalog.DISPATCHERS)
        return found
    if isinstance(given, RackDispatcher):
        return given
    if callable(given):
        return FunctionDispatcher(given)
    raise InvalidInput(
        f"{given!r} is neither a name of stretto list dispatchers nor a function of a RackView", field="dispatcher"
    )


class RackEpisode:
    """One stream on the first rack of a batch, from decision to decision; an observer sees every window."""

    def __init__(
        self,
        batch: RackBatch,
        dispatcher: RackDispatcher,
        *,
        stream: int,
        seed: int,
        observer: Observer | None = None,
    ) -> None:
        self.batch, self.stream, self.observer = batch, stream, observer
        self._random = seeded(seed, stream)
        self.decider = dispatcher.decider(batch, seed=seed, random=self._random)
        restart(batch.model.arrays, batch.streams, batch.state, batch.readings, batch.belief, 0, stream)
        self.is_over = self._to_decision(is_waiting=False)

    def step(self) -> None:
        """Decide once and go on to the next decision, or to the end."""
        batch = self.batch
        action = self.decider.decide()
        act(batch.model.arrays, batch.streams, batch.state, 0, action)
        self.is_over = self._to_decision(is_waiting=action == batch.model.num_actions - 1)

    def _to_decision(self, *, is_waiting: bool) -> bool:
        batch, mask = self.batch, self.batch.mask[0]
        if self.observer is not None:
            return observed_decision(batch, self._random, mask, is_waiting, self.observer)
        rack = (batch.model.arrays, batch.streams, batch.counters, batch.state, batch.readings, batch.belief)
        return bool(to_decision(*rack, batch.params, 0, self._random, mask, is_waiting, batch.is_believing))


def rack_view(batch: RackBatch, num_decisions: int = 0) -> RackView:
    """Return what is known of the first rack of a batch, which stands at a decision."""
    model, state = batch.model, batch.state
    names = [spec.name for spec in model.kernels]
    kernel_of = batch.streams.kernel[state.instance[0]]
    running = {
        processor: "reconfiguring" if task == CONFIGURING else names[kernel_of[task]]
        for processor, task in zip(model.processors, state.task[0].tolist(), strict=True)
        if task != IDLE
    }
    load, load_sd = batch.belief.load[0].tolist(), batch.belief.load_sd[0].tolist()
    return RackView(
        float(state.now_s[0]),
        num_decisions,
        tuple(_choice(batch, action) for action in np.flatnonzero(batch.mask[0]).tolist()),
        running,
        dict(zip(names, state.num_ready[0].tolist(), strict=True)),
        dict(zip(model.resources, load, strict=True)),
        dict(zip(model.resources, load_sd, strict=True)),
    )


def _choice(batch: RackBatch, action: int) -> RackChoice:
    model, arrays, state = batch.model, batch.model.arrays, batch.state
    if action == model.num_actions - 1:
        return RackChoice(action, "wait")
    num_runs = len(model.kernels) * len(model.processors)
    if action < num_runs:
        k, p = divmod(action, len(model.processors))
        first_s = 0.0
    else:
        k, q = divmod(action - num_runs, len(arrays.fpgas))
        p = int(arrays.fpgas[q])
        first_s = float(arrays.reconfigure_s[p])
    alone_s = float(arrays.duration_s[k, p])
    speed = float(expected_speed(arrays, k, p, arrays.proc_machine[p], batch.belief.pressure[0]))
    i, task = int(state.instance[0]), int(state.head[0, k])
    job = int(batch.streams.job[i, task])
    return RackChoice(
        action,
        "execute" if action < num_runs else "reconfigure",
        model.kernels[k].name,
        model.processors[p],
        first_s + alone_s,
        first_s + alone_s / speed,
        job,
        int(state.job_left[0, job]),
        float(batch.streams.rank_s[i, task]),
    )
