"""What MARS followed in a replay, in figures and in one line."""

from __future__ import annotations

from dataclasses import dataclass

from stretto.catalog import STRATEGIES
from stretto.core.units import format_percent
from stretto.queues.mars.candidates import untrained_nets
from stretto.queues.mars.replay import MarsReplay


@dataclass(frozen=True)
class FollowedShares:
    """Who decided in a replay.

    Attributes
    ----------
    shares
        Per candidate that was followed, for which share of the jobs, the largest first.
    policy
        The operator's policy.
    regret
        By which share the real queue has cost more than the policy would have, as of the last comparison; negative =
        it has cost less. None where nothing was compared.
    trained
        For which share of the jobs a trained network was followed; in pools, the trained pair.
    learned
        What that is called.
    """

    shares: dict[str, float]
    policy: str
    regret: float | None
    trained: float
    learned: str = "trained networks"

    @staticmethod
    def of(found: MarsReplay) -> FollowedShares:
        """Return the summary of a replay."""
        others = {*STRATEGIES, *(net.name for net in untrained_nets())}
        regret = found.choices[-1].regret if found.choices else None
        trained = sum(
            share for name, share in found.shares.items() if name not in others and name not in found.untrained
        )
        learned = "the trained pair" if found.untrained else "trained networks"
        return FollowedShares(found.shares, found.candidates[0], regret, trained, learned)

    def to_json(self) -> dict[str, object]:
        """Return the figures by the names that programs read."""
        return {"followed": self.shares, "policy": self.policy, "regret": self.regret, "trained_share": self.trained}

    def __str__(self) -> str:
        parts = ", ".join(f"{name} {format_percent(share, decimals=0)}" for name, share in self.shares.items())
        compared = "nothing was compared"
        if self.regret is not None:
            compared = f"regret {format_percent(self.regret, decimals=0, is_signed=True)} against {self.policy}"
        trained = format_percent(self.trained, decimals=0)
        return f"{parts} of jobs; {compared}; {self.learned} decided for {trained}"
