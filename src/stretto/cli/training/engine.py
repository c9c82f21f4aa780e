"""Learning on an engine: the last stage of a training measures its plans instead of simulating them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stretto.cli.sources import KERNELS_PREFIX, load_kernels
from stretto.errors import InvalidInput

if TYPE_CHECKING:
    from stretto.core.problem import Problem
    from stretto.engines.executor import EngineExecutor


def load_measured(graph: str, cluster: str | None, engine: str) -> tuple[Problem, EngineExecutor]:
    """Return the problem of some work with real kernels, calibrated, and who runs its plans.

    The simulator of the earlier stages is given the times that the engine has: guessed ones would teach nonsense.
    """
    from stretto.cli.sources import load_cluster
    from stretto.cli.terminal.progress import ProgressLine
    from stretto.core.problem import Problem
    from stretto.engines.calibrate import calibrate
    from stretto.engines.engine import make_engine
    from stretto.engines.executor import EngineExecutor

    if not graph.startswith(KERNELS_PREFIX):
        raise InvalidInput(
            f"{graph!r} computes nothing: an engine runs {KERNELS_PREFIX}NAME?key=value", field="--engine"
        )
    if cluster is None:
        raise InvalidInput("name the machines, for example --cluster cpu:2", field="--cluster")
    runner, machines = make_engine(engine), load_cluster(cluster)
    work = load_kernels(graph)
    with ProgressLine(f"measuring {work.graph.name} on {engine}"):
        found = calibrate(runner, work, machines)
    problem = Problem.of(found.graph(work.graph), found.cluster(machines))
    return problem, EngineExecutor(runner, work, machines)
