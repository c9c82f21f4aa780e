"""The shape of Doppler's networks, and what is learned at all."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from stretto.errors import InvalidInput

Encoder = Literal["light", "paper"]
SelRule = Literal["learned", "b-level"]
PlcRule = Literal["learned", "one-shot", "earliest", "lookahead"]


@dataclass(frozen=True)
class NetSettings:
    """How the graph is encoded and the heads are built.

    Attributes
    ----------
    encoder
        ``paper``: NNConv messages and a GRU, the released code's; ``light``: gated sums over producers and
        readers with separate weights, at a hundredth of the size. The two have not been compared at length.
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

    def __post_init__(self) -> None:
        for name in ("hidden", "rounds", "head", "window"):
            if getattr(self, name) < 1:
                raise InvalidInput(f"{getattr(self, name)} must be at least 1", field=name)
        for name, known in (
            ("encoder", ("light", "paper")),
            ("sel", ("learned", "b-level")),
            ("plc", ("learned", "one-shot", "earliest", "lookahead")),
        ):
            if getattr(self, name) not in known:
                raise InvalidInput(f"{getattr(self, name)!r} is not one of {', '.join(known)}", field=name)

    @staticmethod
    def paper() -> NetSettings:
        """Return the size and the freedoms of the published network."""
        return NetSettings(encoder="paper", hidden=128, rounds=6, head=64, tables=False, symmetric=False)
