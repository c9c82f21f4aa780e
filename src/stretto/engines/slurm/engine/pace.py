"""How a run on Slurm is followed: how often to look, and how long to wait for what."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Pace:
    """How often to look, and how long to wait for a controller that is away."""

    logs_s: float = 0.1
    queue_s: float = 2.0
    patience_s: float = 900.0
    window: int = 1000  # jobs in the queue at once
    base_priority: int = 0  # added to the priorities of the chart
    max_submissions: int = 10  # of one task
    linger_s: float = 5.0  # a job may outlive its task
    launch_s: float = 60.0  # a job may be called running before its script is at work
    is_resuming_nodes: bool = False  # those that Slurm drained because of a job that it started twice
