"""What a run on threads and a run on processes begin with."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from stretto.core.plan import Plan
from stretto.core.problem import Problem
from stretto.engines.driver.dispatch import Dispatcher
from stretto.engines.driver.driver import DriverRules
from stretto.engines.driver.memory import DeviceMemory
from stretto.engines.engine import RunOptions
from stretto.engines.local.transfers import is_all_timed
from stretto.engines.recorder import Recorder, driver_for
from stretto.engines.work import Work


@dataclass(frozen=True, eq=False)
class LocalSetup:
    """What runs, by which dispatcher, and on which cores.

    Attributes
    ----------
    cores
        Of each device; None leaves it to the system.
    memory_limits
        Bytes that the command of a task may take at most, by task.
    num_queued
        Tasks that wait on a device behind the running one.
    """

    work: Work
    decider: Plan | Dispatcher
    problem: Problem
    options: RunOptions
    cores: list[list[int] | None]
    num_queued: int
    memory_limits: Mapping[int, int] = field(default_factory=dict)

    @property
    def moves_data(self) -> bool:
        """Whether the driver moves the data: where all tasks only pass time, transfers do, too."""
        return is_all_timed(self.work)

    def recorder(self, memory: DeviceMemory | None) -> Recorder:
        """Return a recorder with a driver of its own."""
        rules = DriverRules(num_queued=self.num_queued, moves_data=self.moves_data)
        driver = driver_for(self.problem, self.decider, self.work, self.options, rules, memory=memory)
        return Recorder(self.work, driver, self.options)
