"""``stretto/Strategy-v1``: choose the order of the queue for a while.

A choice is due when ``interval_s`` have passed since the last one, more than one job waits and a processor is
free: only then does the order matter. Always choosing one strategy is ``replay`` with it, to the last bit.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from stretto.errors import InvalidInput
from stretto.queues.env.base import EpisodeEnv, EpisodeVectorEnv
from stretto.queues.env.batch import Episode, EpisodeBatch, plain_strategies
from stretto.queues.env.led_batch import LedBatch, make_batch


def _batch(count: int, strategies: Sequence[str] | None, params: dict[str, Any]) -> EpisodeBatch | LedBatch:
    names = plain_strategies() if strategies is None else tuple(strategies)
    if not names:
        raise InvalidInput("there is nothing to choose from", field="strategies")
    return make_batch(Episode(**{"backfill": "easy", "interval_s": 3600.0, **params}), count, names)


class StrategyEnv(EpisodeEnv):
    """Choose a strategy; with backfilling and an hour between choices unless the parameters of ``Episode`` differ.

    Parameters
    ----------
    strategies
        Names of the catalog, by default all that need nothing but a job and the time.
    """

    def __init__(self, strategies: Sequence[str] | None = None, **params: Any) -> None:
        super().__init__(_batch(1, strategies, params))


class StrategyVectorEnv(EpisodeVectorEnv):
    """Many of them, in compiled code."""

    def __init__(self, num_envs: int = 1, strategies: Sequence[str] | None = None, **params: Any) -> None:
        super().__init__(_batch(num_envs, strategies, params), num_envs)
