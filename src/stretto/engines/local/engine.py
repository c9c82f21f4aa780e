"""The local engine: a pinned thread or process per device, pinned threads for the tasks of a node."""

from __future__ import annotations

import math
import os
from dataclasses import dataclass, replace
from typing import Literal

from stretto.core.plan import Plan
from stretto.core.problem import Problem
from stretto.engines.driver.dispatch import Dispatcher
from stretto.engines.driver_engine import DriverEngine
from stretto.engines.engine import RunOptions, RunResult, restore_ctrl_c
from stretto.engines.local.cores import usable_cores
from stretto.engines.local.descendants import can_adopt
from stretto.engines.local.lanes import cores_of_devices
from stretto.engines.local.setup import LocalSetup
from stretto.engines.work import Command, Work
from stretto.errors import InvalidInput

_UNHELD = "on this system, background processes of commands outlive a killed run"


@dataclass(frozen=True)
class LocalEngine(DriverEngine):
    """Runs work on this machine.

    Attributes
    ----------
    workers
        ``thread``: for kernels that release the GIL (numpy, jax), commands, timed tasks; a hop between devices takes
        about 15 microseconds. ``process``: for any Python code; outputs are plain data in shared memory.
    num_queued
        Tasks that wait on a device behind the running one.
    is_pinned
        Whether each device gets a core of its own, and each task of a node as many as it needs, where there are enough.
    limits_memory
        Whether a command on a node that states its memory gets no more than it states (``RLIMIT_DATA``).
    makes_copies
        Whether devices read copies of what other devices made, as they would with memories of their own.
    max_restarts
        How often the process of one device may die before the device counts as lost.
    """

    workers: Literal["thread", "process"] = "thread"
    num_queued: int = 1
    is_pinned: bool = True
    makes_copies: bool = True
    max_restarts: int = 8
    limits_memory: bool = True

    def __post_init__(self) -> None:
        if self.workers not in ("thread", "process"):
            raise InvalidInput(f"{self.workers!r} is not 'thread' or 'process'", field="workers")
        if self.num_queued < 0:
            raise InvalidInput(f"{self.num_queued} must not be negative", field="num_queued")

    @property
    def is_on_this_host(self) -> bool:
        return True

    def available(self) -> str | None:
        if self.workers == "process" and not hasattr(os, "fork"):
            return "workers=process needs fork, which this system lacks; use workers=thread"
        return None

    def play(self, problem: Problem, decider: Plan | Dispatcher, work: Work, options: RunOptions) -> RunResult:
        restore_ctrl_c()
        if problem.packing is not None and self.workers == "process":
            raise InvalidInput(
                "a process runs one task at a time; nodes that pack need workers=thread (a command is a process, too)",
                field="workers",
            )
        cores = cores_of_devices(problem, self.is_pinned and not work.is_timed)
        limits = _memory_limits(problem, work) if self.limits_memory else {}
        setup = LocalSetup(work, decider, problem, options, cores, self.num_queued, limits)
        if self.workers == "thread":
            from stretto.engines.local.threads import ThreadRun

            found = ThreadRun(setup, makes_copies=self.makes_copies).run()
        else:
            from stretto.engines.local.processes import ProcessRun

            found = ProcessRun(setup, max_restarts=self.max_restarts).run()
        return _with_notes(found, problem, work)


def _memory_limits(problem: Problem, work: Work) -> dict[int, int]:
    """Return what the commands of tasks that state their memory may take, where nodes limit it."""
    memory = problem.graph.memory_bytes
    if problem.packing is None or memory is None:
        return {}
    return {
        task: math.ceil(size)
        for task, size in enumerate(memory.tolist())
        if size > 0 and isinstance(work.actions[task], Command)
    }


def _with_notes(found: RunResult, problem: Problem, work: Work) -> RunResult:
    """Say so when devices were not what they seem, and where a kill would not have ended everything."""
    if not can_adopt() and any(isinstance(action, Command) for action in work.actions):
        found = replace(found, notes=(*found.notes, _UNHELD))
    if found.is_timed:
        timed = "timed: tasks only waited for their planned time, so the makespan says nothing about real machines"
        return replace(found, notes=(*found.notes, timed))
    notes = []
    others = [kind for kind in problem.cluster.kinds if kind != "cpu"]
    if others:
        notes.append(f"{', '.join(others)} emulated: this engine runs every task on a CPU core")
    num_devices, num_cores = problem.num_devices, len(usable_cores())
    in_all = sum(math.ceil(device.cores) if device.packs else 1 for device in problem.cluster.devices)
    if problem.packing is not None and in_all > num_cores:
        notes.append(
            f"the nodes have {in_all} cores in all and this machine {num_cores}: tasks were not pinned, and shared them"
        )
    elif num_devices > num_cores:
        notes.append(f"{num_devices} devices shared {num_cores} cores: tasks took longer than on separate devices")
    return replace(found, notes=(*found.notes, *notes)) if notes else found
