"""What a client asks of the plugin in Dask's scheduler, and what the plugin has to tell."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from stretto.core.cluster import Cluster
from stretto.core.plan import Discipline
from stretto.core.planner import Budget
from stretto.engines.dask.estimates import Estimates
from stretto.engines.online import Dispatcher


@dataclass(frozen=True)
class Settings:
    """What a client asked for; travels to the scheduler with the plugin.

    Attributes
    ----------
    policy
        The name of a planner, or an online dispatcher.
    fixed
        A plan made before: the worker and the position of tasks by key text; takes the place of the policy.
    """

    client_id: str
    policy: str | Dispatcher = "heft"
    params: Mapping[str, Any] = field(default_factory=dict)
    fixed: Mapping[str, tuple[str, int]] | None = None
    cluster: Cluster | None = None
    estimates: Estimates = field(default_factory=Estimates)
    discipline: Discipline = "work-conserving"
    budget: Budget = field(default_factory=Budget)

    @property
    def is_held_back(self) -> bool:
        return self.discipline == "sequence" or not isinstance(self.policy, str)


@dataclass
class Report:
    """What the plugin did.

    Attributes
    ----------
    hook_s, plan_s
        Seconds inside Dask's ``update_graph``, and the part of them that planners took.
    errors
        Graphs that were left to Dask, and why.
    """

    num_graphs: int = 0
    num_tasks: int = 0
    num_ended: int = 0
    num_replans: int = 0
    hook_s: float = 0.0
    plan_s: float = 0.0
    errors: list[str] = field(default_factory=list)

    @property
    def hook_us_per_task(self) -> float:
        return 1e6 * self.hook_s / self.num_tasks if self.num_tasks else 0.0
