"""Replay jobs on a site as its Slurm would schedule them."""

from __future__ import annotations

import numpy as np

from stretto.core.site import Site
from stretto.core.site_policy import SchedulerTiming
from stretto.core.trace import Trace
from stretto.queues.nodes.replay import to_result
from stretto.queues.nodes.run import NodeRun
from stretto.queues.nodes.setup import prepare_nodes
from stretto.queues.nodes.slurm_model.model import SlurmModel
from stretto.queues.nodes.slurm_model.parameters import DaemonTiming
from stretto.queues.nodes.slurm_model.state import ControllerState
from stretto.queues.result import QueueResult


def replay_like_slurm(
    trace: Trace,
    site: Site,
    *,
    scheduler: SchedulerTiming | None = None,
    timing: DaemonTiming | None = None,
    kill: bool = False,
) -> QueueResult:
    """Replay jobs on a site by the rules of Slurm's main and backfill schedulers.

    Parameters
    ----------
    scheduler
        By default what the site's policy says, or Slurm's own defaults.
    timing
        Delays and phases of the daemons.
    kill
        Whether jobs end at their time limit.
    """
    setup = prepare_nodes(trace, site, kill=kill)
    model = SlurmModel(setup, scheduler or site.policy.scheduler or SchedulerTiming(), timing or DaemonTiming())
    model.run()
    return to_result(setup, run_of(model.state), {"strategy": "slurm", "backfill": "slurm", "estimates": "user"})


def run_of(state: ControllerState) -> NodeRun:
    """Return what happened in a model that has run."""
    counts = np.array([len(found) for found in state.places], dtype=np.int64)
    flat = np.array([(p.node, p.tasks, p.shape) for found in state.places for p in found], np.int32).reshape(-1, 3)
    return NodeRun(
        np.array(state.start),
        np.array(state.end),
        np.array(state.eligible),
        np.concatenate(([0], np.cumsum(counts))),
        *(flat[:, column].copy() for column in range(3)),
    )
