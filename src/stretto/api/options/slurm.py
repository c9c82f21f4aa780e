"""How a live Slurm is reached and steered; light to import."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from stretto.errors import InvalidInput

if TYPE_CHECKING:
    from stretto.engines.slurm.client.rest import RestPlace
    from stretto.queues.view import QueueOrder


@dataclass(frozen=True)
class SteerOptions:
    """How a live queue is steered.

    Attributes
    ----------
    mode
        ``sitefactor`` is added to Slurm's own priority; ``priority`` takes its place.
    interval
        Between looks at the queue.
    budget
        For a decision; a later one is dropped.
    depth
        Jobs from the head of the queue on that are ordered.
    backfill
        ``promise``: every job is promised a latest start when it is first seen, and jobs that would miss it come
        first. By default nothing is promised.
    slack
        Of backfill ``promise``: how much later than planned at submission a job may start; ``24h+4e+1wait`` (a day,
        four times its estimate, and once its planned wait) by default.
    """

    mode: str = "sitefactor"
    interval: str = "2s"
    budget: str = "1s"
    depth: int = 200
    backfill: str | None = None
    slack: str | None = None

    def __post_init__(self) -> None:
        if self.backfill not in (None, "promise"):
            message = f"{self.backfill!r}: Slurm backfills itself; promise is what steering can add"
            raise InvalidInput(message, field="--backfill")
        if self.slack is not None and self.backfill is None:
            raise InvalidInput("needs --backfill promise", field="--slack")

    @property
    def interval_s(self) -> float:
        from stretto.core.units import parse_seconds

        return parse_seconds(self.interval)

    def promised(self, order: QueueOrder) -> QueueOrder:
        """Return an order inside promises, where they are asked for.

        Plans keep a margin of two looks at the queue and one pass of Slurm's backfilling, 30 s by default.
        """
        if self.backfill is None:
            return order
        from stretto.queues.promises.live import PromisedOrder
        from stretto.queues.promises.slack import DEFAULT_SLACK, Slack

        slack = Slack.parse(DEFAULT_SLACK if self.slack is None else self.slack)
        if slack.time_s == math.inf:
            raise InvalidInput("inf promises nothing: omit --backfill promise", field="--slack")
        return PromisedOrder(order, slack, 2 * self.interval_s + 30.0)

    @property
    def budget_s(self) -> float:
        from stretto.core.units import parse_seconds

        return parse_seconds(self.budget)


@dataclass(frozen=True)
class SlurmPlace:
    """How Slurm is reached: by its programs and a ``slurm.conf``, or by its REST daemon.

    Attributes
    ----------
    conf
        By default ``$SLURM_CONF``.
    rest
        URL of slurmrestd.
    token_file
        Holds the token for it; by default ``$SLURM_JWT``.
    """

    conf: Path | None = None
    rest: str | None = None
    token_file: Path | None = None

    def __post_init__(self) -> None:
        if self.rest is None and self.token_file is not None:
            raise InvalidInput("is for --rest URL", field="--token-file")
        if self.rest is not None and self.conf is not None:
            raise InvalidInput(
                "Slurm is used through its programs (--conf) or through --rest, not both", field="--conf"
            )

    def rest_place(self) -> RestPlace | None:
        """Return the REST daemon, where that is meant."""
        from stretto.engines.slurm.client.rest import RestPlace

        if self.rest is None:
            return None
        return RestPlace(self.rest, str(self.token_file.resolve()) if self.token_file is not None else None)

    def conf_path(self) -> str | None:
        """Return the slurm.conf that is meant, such that a guard process finds it from any directory."""
        import os

        named = str(self.conf) if self.conf is not None else os.environ.get("SLURM_CONF")
        return str(Path(named).resolve()) if named and self.rest is None else None
