"""What ``stretto run`` was asked for: as options, and as the settings that the run log keeps for a resumption."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import TYPE_CHECKING, Any

from stretto.cli.sources import KERNELS_PREFIX
from stretto.errors import InvalidInput

if TYPE_CHECKING:
    from stretto.core.plan import Discipline, Plan
    from stretto.core.problem import Problem
    from stretto.engines.work import Work


@dataclass(frozen=True)
class RunRequest:
    """One run, in words that mean the same in another directory and at another time.

    Attributes
    ----------
    plan_file
        A saved plan, in place of a decision by the policy.
    """

    workflow: str
    cluster: str
    engine: str = "local"
    policy: str = "heft"
    scale: float = 1.0
    seed: int = 0
    time_limit_s: float | None = None
    discipline: Discipline | None = None
    max_attempts: int = 3
    keep_going: bool = False
    params: dict[str, Any] = field(default_factory=dict)
    engine_params: dict[str, Any] = field(default_factory=dict)
    plan_file: str | None = None

    def settings(self) -> dict[str, Any]:
        """Return the request as JSON values."""
        return asdict(self)

    @staticmethod
    def from_settings(settings: Mapping[str, Any], run_id: str) -> RunRequest:
        """Return the request of an earlier run."""
        known = {item.name for item in fields(RunRequest)}
        try:
            return RunRequest(**{key: value for key, value in settings.items() if key in known})
        except TypeError as error:
            raise InvalidInput(f"cannot be resumed: {error}", field=f"run {run_id}") from None

    def load_work(self) -> Work:
        """Read a workflow of commands, or make timed work of a graph."""
        from stretto.cli.sources import load_graph, load_kernels
        from stretto.core.graph import TaskGraph
        from stretto.engines.work import Work
        from stretto.engines.workflow_file import is_workflow, load_workflow

        if is_workflow(self.workflow):
            return load_workflow(self.workflow)
        if self.workflow.startswith(KERNELS_PREFIX):
            return load_kernels(self.workflow)
        graph = load_graph(self.workflow)
        if not isinstance(graph, TaskGraph):
            raise InvalidInput("holds several graphs; name one of them with FILE#MEMBER", source=self.workflow)
        return Work.timed(graph, self.scale)

    def make_plan(self, problem: Problem) -> Plan:
        """Return the saved plan, or let the policy decide."""
        from stretto.cli.terminal.progress import ProgressLine
        from stretto.core.planner import Budget
        from stretto.graphs.evaluate import planner_named

        if self.plan_file is not None:
            from stretto.files.document import read_document
            from stretto.files.plan_json import read_plan

            return read_plan(read_document(self.plan_file), problem)
        planner = planner_named(self.policy, self.params)
        reason = planner.supports(problem)
        if reason is not None:
            raise InvalidInput(f"cannot plan this: {reason}", field=f"policy {self.policy}")
        with ProgressLine(f"planning {problem.num_tasks:,} tasks with {self.policy}") as line:
            return planner.plan(problem, Budget(self.seed, self.time_limit_s, on_progress=line.update))


def is_timed(workflow: str) -> bool:
    """Say whether the tasks of a workflow only pass time: those of a graph do, commands and kernels do not."""
    from stretto.engines.workflow_file import is_workflow

    return not (is_workflow(workflow) or workflow.startswith(KERNELS_PREFIX))
