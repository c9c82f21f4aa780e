"""Work on Ray: placement by one actor for each device, order by the driver, as Ray itself has no priorities."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from stretto.core.cluster import Cluster
from stretto.core.plan import Plan
from stretto.core.problem import Problem
from stretto.engines.driver.dispatch import Dispatcher
from stretto.engines.driver.driver import DriverRules
from stretto.engines.driver_engine import DriverEngine, missing_package
from stretto.engines.engine import RunOptions, RunResult
from stretto.engines.recorder import Recorder, driver_for
from stretto.engines.work import Work
from stretto.errors import EngineFailure, MissingExtra


@dataclass(frozen=True)
class RayEngine(DriverEngine):
    """Runs each task in the actor of its device.

    Attributes
    ----------
    address
        A Ray cluster that runs already, such as ``auto``; a node that offers a custom resource with a device's name
        gets that device's actor, other actors go where Ray finds room. None starts Ray on this machine for the run.
    num_queued
        Tasks sent to an actor while it still runs another, which hides the way there.
    """

    address: str | None = None
    num_queued: int = 1

    def available(self) -> str | None:
        return missing_package("ray", "Ray", "ray")

    def play(self, problem: Problem, decider: Plan | Dispatcher, work: Work, options: RunOptions) -> RunResult:
        if self.available() is not None:
            raise MissingExtra("ray", "ray", "the Ray engine")
        from stretto.engines.ray.actors import RayRun

        driver = driver_for(problem, decider, work, options, DriverRules(num_queued=self.num_queued))
        recorder = Recorder(work, driver, options)
        with self._ray(problem.cluster):
            is_interrupted = RayRun(recorder).run()
        return recorder.result("ray", is_timed=work.is_timed, is_interrupted=is_interrupted)

    @contextmanager
    def _ray(self, cluster: Cluster) -> Iterator[None]:
        """Connect to Ray, or start it; what was there before stays."""
        import logging

        import ray

        if ray.is_initialized():
            yield
            return
        quiet = {"logging_level": logging.ERROR, "log_to_driver": False}
        try:
            if self.address is not None:
                ray.init(address=self.address, **quiet)
            else:
                ray.init(num_cpus=cluster.num_devices, include_dashboard=False, **quiet)
        except (ConnectionError, RuntimeError, ValueError) as error:
            raise EngineFailure(f"cannot start Ray, or connect to it: {error}") from error
        try:
            yield
        finally:
            ray.shutdown()
