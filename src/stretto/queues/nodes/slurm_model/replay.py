"""Replay jobs on a site as its Slurm would schedule them."""

from __future__ import annotations

import numpy as np

from stretto.core.site import Site
from stretto.core.site_policy import SchedulerTiming
from stretto.queues.nodes.replay import NodeResult
from stretto.queues.nodes.setup import NodeSetup, SiteJobs, prepare_nodes
from stretto.queues.nodes.slurm_model.model import SlurmModel
from stretto.queues.nodes.slurm_model.parameters import DaemonTiming


def replay_like_slurm(
    site: Site,
    jobs: SiteJobs,
    *,
    scheduler: SchedulerTiming | None = None,
    timing: DaemonTiming | None = None,
    kill: bool = False,
) -> NodeResult:
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
    setup = prepare_nodes(site, jobs, kill=kill)
    model = SlurmModel(setup, scheduler or site.policy.scheduler or SchedulerTiming(), timing or DaemonTiming())
    model.run()
    return result_of(setup, model)


def result_of(setup: NodeSetup, model: SlurmModel) -> NodeResult:
    """Return what happened in a model that has run."""
    places = model.state.places
    counts = np.array([len(found) for found in places], dtype=np.int64)
    flat = np.array([(p.node, p.tasks, p.shape) for found in places for p in found], dtype=np.int64).reshape(-1, 3)
    return NodeResult(
        setup,
        np.array(model.state.start),
        np.array(model.state.end),
        np.concatenate(([0], np.cumsum(counts))),
        flat[:, 0].copy(),
        flat[:, 1].copy(),
        flat[:, 2].copy(),
    )
