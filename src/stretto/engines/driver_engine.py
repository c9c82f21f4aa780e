"""What engines have in common that run by a plan and by a dispatcher alike."""

from __future__ import annotations

from abc import ABC, abstractmethod
from importlib.util import find_spec

from stretto.core.cluster import Cluster
from stretto.core.plan import Plan
from stretto.core.problem import Problem
from stretto.engines.driver.dispatch import Dispatcher
from stretto.engines.engine import RunOptions, RunResult
from stretto.engines.rented_nodes import wait_until_up
from stretto.engines.work import Work


def missing_package(package: str, name: str, extra: str) -> str | None:
    """Return what to install where a package is missing, None where it is there; it is not imported."""
    if find_spec(package) is not None:
        return None
    return f"{name} is not installed: pip install 'stretto[{extra}]'"


class DriverEngine(ABC):
    """An engine whose runs the driver decides, step by step."""

    def run(self, work: Work, plan: Plan, cluster: Cluster, options: RunOptions) -> RunResult:
        problem = wait_until_up(Problem.of(work.graph, cluster), plan, options.ready_s)
        return self.play(problem, plan, work, options)

    @property
    def is_on_this_host(self) -> bool:
        """Whether all tasks run on this machine, so that its counters tell of them."""
        return False

    @abstractmethod
    def play(self, problem: Problem, decider: Plan | Dispatcher, work: Work, options: RunOptions) -> RunResult:
        """Run a problem, which may have release times, by a plan or by the late decisions of a dispatcher."""
