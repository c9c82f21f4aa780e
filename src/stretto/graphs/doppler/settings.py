"""The shape of Doppler's networks, and what is learned at all."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal, get_args

from stretto.errors import InvalidInput

Encoder = Literal["light", "paper"]
SelRule = Literal["learned", "b-level"]
PlcRule = Literal["learned", "one-shot", "earliest", "lookahead"]
#: Sizes beyond these are slips or forged files; the paper's encoder has a weight for each triple of units.
_MAX_SIZE = 1024
_MAX_PAPER = 256
_MAX_ROUNDS = 64


@dataclass(frozen=True)
class DopplerSettings:
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
        most_hidden = _MAX_PAPER if self.encoder == "paper" else _MAX_SIZE
        for name, most in (("hidden", most_hidden), ("head", _MAX_SIZE), ("rounds", _MAX_ROUNDS)):
            if getattr(self, name) > most:
                raise InvalidInput(f"{getattr(self, name)} must be at most {most}", field=name)
        for name, kind in (("encoder", Encoder), ("sel", SelRule), ("plc", PlcRule)):
            if getattr(self, name) not in get_args(kind):
                raise InvalidInput(f"{getattr(self, name)!r} is not one of {', '.join(get_args(kind))}", field=name)

    @staticmethod
    def paper() -> DopplerSettings:
        """Return the size and the freedoms of the published network."""
        return DopplerSettings(encoder="paper", hidden=128, rounds=6, head=64, tables=False, symmetric=False)


#: Fields that checkpoints of earlier versions hold, with the only value that is still trained here.
_OLD_FIELDS: dict[str, object] = {"policy": "dual", "encode_every": 0}


def saved_settings(saved: Mapping[str, object], kind: type[DopplerSettings] = DopplerSettings) -> dict[str, Any]:
    """Return the settings of a checkpoint of any version: fields added since have their default."""
    defaults = asdict(kind())
    gone = {name for name, value in _OLD_FIELDS.items() if name not in defaults and saved.get(name) == value}
    return defaults | {name: value for name, value in saved.items() if name not in gone}
