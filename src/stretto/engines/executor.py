"""An engine as the thing that Doppler's third stage learns from: plans in, measured seconds out."""

from __future__ import annotations

from dataclasses import dataclass, field

from stretto.core.cluster import Cluster
from stretto.core.plan import Plan
from stretto.engines.engine import Engine, RunOptions
from stretto.engines.work import Work


@dataclass(eq=False)
class EngineExecutor:
    """Runs plans of one piece of work; fits ``graphs.doppler.stages.ReinforceOnEngine``.

    Attributes
    ----------
    runs
        How many plans have been run.
    """

    engine: Engine
    work: Work
    cluster: Cluster
    runs: int = field(default=0)

    def execute(self, plan: Plan) -> float:
        """Run a plan and return the seconds from its first start to its last end, in those of the graph.

        Timed work is scaled back, so that its seconds compare with the planner's.
        """
        self.runs += 1
        found = self.engine.run(self.work, plan, self.cluster, RunOptions(digests=False, keep="none")).check()
        return found.makespan_s / self.work.time_scale
