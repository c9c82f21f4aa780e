"""Settings of the ablations: what they change besides the network of the shipped Doppler."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from stretto.errors import InvalidInput
from stretto.graphs.doppler.settings import DopplerSettings

Policy = Literal["dual", "joint", "improve"]


@dataclass(frozen=True)
class AblationSettings(DopplerSettings):
    """Network settings with the choices that only ablations have.

    Attributes
    ----------
    policy
        ``dual``: a task, then its device. ``joint``: one choice among all (ready task, device) pairs, by the sum of the
        two heads' scores. ``improve``: as Placeto, the episode starts with a random placement, tasks are visited in a
        fixed order, and each may be moved.
    encode_every
        0 encodes the graph once per update; k encodes it anew, with the placement so far, at every k-th step of an
        episode. The weights then fit one number of devices, and episodes are played outside the compiled loop.
    """

    policy: Policy = "dual"
    encode_every: int = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        known = ("dual", "joint", "improve")
        if self.policy not in known:
            raise InvalidInput(f"{self.policy!r} is not one of {', '.join(known)}", field="policy")
        least = 1 if self.policy == "improve" else 0
        if self.encode_every < least:
            raise InvalidInput(f"{self.encode_every} must be at least {least}", field="encode_every")
        if self.policy == "joint" and self.encode_every:
            raise InvalidInput("a joint policy encodes the graph once", field="encode_every")
        if self.policy != "dual" and (self.sel, self.plc) != ("learned", "learned"):
            raise InvalidInput(f"{self.policy!r} is one decision: sel and plc must both be learned", field="policy")
        if self.encode_every and self.encoder != "light":
            raise InvalidInput("only the light encoder reads placements", field="encode_every")
