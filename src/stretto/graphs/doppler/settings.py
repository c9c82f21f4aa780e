"""The shape of Doppler's networks, and what is learned at all."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from stretto.errors import InvalidInput

Encoder = Literal["light", "paper"]
SelRule = Literal["learned", "b-level"]
PlcRule = Literal["learned", "one-shot", "earliest", "lookahead"]
Policy = Literal["dual", "joint", "improve"]
#: Sizes beyond these are slips or forged files; the paper's encoder has a weight for each triple of units.
_MAX_SIZE = 1024
_MAX_PAPER = 256
_MAX_ROUNDS = 64


@dataclass(frozen=True)
class NetSettings:
    """How the graph is encoded and the heads are built.

    Attributes
    ----------
    encoder
        ``paper``: NNConv messages and a GRU, the released code's; ``light``: gated sums over producers and
        readers with separate weights, at a hundredth of the size. The card has a short comparison.
    hidden, rounds
        Width of a task's embedding, and message-passing rounds; the paper's are 128 and 6.
    head
        Hidden units of each head; the paper's are 64.
    tables
        One free number per task for SEL and per (task, device) for PLC. They let training on one graph tell
        identical shards apart; a network that is to be used on other graphs has none.
    window
        How many ready tasks SEL scores at a time, by falling b-level.
    symmetric
        Of empty interchangeable devices only the first may be taken: plans that differ by the names
        of such devices are one plan.
    sel, plc
        Which of the two decisions are learned; the others are the paper's ablations. ``one-shot`` learns all devices
        from the encoding of the graph alone, as GDP does: nothing that happens in the episode is seen, and
        the weights are good for one number of devices.
    policy
        ``dual``: a task, then its device. ``joint``: one choice among all (ready task, device) pairs, by the sum of the
        two heads' scores. ``improve``: as Placeto, a random placement is there from the start, tasks are
        visited in a fixed order, and each may be moved.
    encode_every
        0 encodes the graph once per update; k encodes it anew, with the placement so far, at every k-th step of an
        episode. The weights are then good for one number of devices, and episodes are played outside
        the fast loop.
    """

    encoder: Encoder = "light"
    hidden: int = 32
    rounds: int = 3
    head: int = 32
    tables: bool = True
    window: int = 32
    symmetric: bool = True
    sel: SelRule = "learned"
    plc: PlcRule = "learned"
    policy: Policy = "dual"
    encode_every: int = 0

    def __post_init__(self) -> None:
        for name in ("hidden", "rounds", "head", "window"):
            if getattr(self, name) < 1:
                raise InvalidInput(f"{getattr(self, name)} must be at least 1", field=name)
        for name, most in (("hidden", _MAX_PAPER if self.encoder == "paper" else _MAX_SIZE), ("head", _MAX_SIZE)):
            if getattr(self, name) > most:
                raise InvalidInput(f"{getattr(self, name)} must be at most {most}", field=name)
        if self.rounds > _MAX_ROUNDS:
            raise InvalidInput(f"{self.rounds} must be at most {_MAX_ROUNDS}", field="rounds")
        for name, known in (
            ("encoder", ("light", "paper")),
            ("sel", ("learned", "b-level")),
            ("plc", ("learned", "one-shot", "earliest", "lookahead")),
            ("policy", ("dual", "joint", "improve")),
        ):
            if getattr(self, name) not in known:
                raise InvalidInput(f"{getattr(self, name)!r} is not one of {', '.join(known)}", field=name)
        self._check_policy()

    def _check_policy(self) -> None:
        """Refuse combinations that no code plays."""
        if self.encode_every < 0 or (self.policy == "improve" and self.encode_every == 0):
            least = 1 if self.policy == "improve" else 0
            raise InvalidInput(f"{self.encode_every} must be at least {least}", field="encode_every")
        if self.policy == "joint" and self.encode_every:
            raise InvalidInput("a joint policy encodes the graph once", field="encode_every")
        if self.policy != "dual" and (self.sel, self.plc) != ("learned", "learned"):
            raise InvalidInput(f"{self.policy!r} is one decision: sel and plc must both be learned", field="policy")
        if self.encode_every and self.encoder != "light":
            raise InvalidInput("only the light encoder sees placements", field="encode_every")

    @staticmethod
    def paper() -> NetSettings:
        """Return the size and the freedoms of the published network."""
        return NetSettings(encoder="paper", hidden=128, rounds=6, head=64, tables=False, symmetric=False)
