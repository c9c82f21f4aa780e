"""``stretto/Queue-v1``: pick the job that starts next.

A decision is due whenever some waiting job fits. An action is a place among the visible jobs, which stand in the
order of the queue. A job that fits starts, and the next decision is at the same moment. One
that does not fit blocks the queue until the next event; with backfilling, jobs that do not delay it start before.
It may be left for another then: nothing is sticky. A place without a job means the head of the queue.

On a site (``site=``) and with promises (``backfill="promise"``) only jobs that may start now can be picked: they fit,
and every promise can still be kept. ``info["action_mask"]`` says which; one more action, the last, waits for the next
event. Jobs whose promise leaves no more time start by themselves.

On a plain machine, always picking place 0 with ``order="sjf"`` is ``replay(strategy="sjf", backfill="none")``, to the
last bit.
"""

from __future__ import annotations

from typing import Any

from stretto.queues.env.base import EpisodeEnv, EpisodeVectorEnv
from stretto.queues.env.batch import Episode
from stretto.queues.env.led_batch import make_batch


class QueueEnv(EpisodeEnv):
    """Pick the next job; the parameters are those of ``Episode``."""

    def __init__(self, **params: Any) -> None:
        super().__init__(make_batch(Episode(**params), 1))


class QueueVectorEnv(EpisodeVectorEnv):
    """Many of them, in compiled code."""

    def __init__(self, num_envs: int = 1, **params: Any) -> None:
        super().__init__(make_batch(Episode(**params), num_envs), num_envs)
