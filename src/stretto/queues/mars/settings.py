"""What an operator says of MARS: whom to trust, what else to choose from, and what is to be least."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from stretto.errors import InvalidInput
from stretto.queues.mars.cost import USUAL, Cost
from stretto.queues.mars.follower import LEARNED
from stretto.queues.mars.network import TRAINED, MarsNet, load_nets
from stretto.queues.mars.replay import candidates_of
from stretto.queues.mars.selector import EVIDENCE, Selection


@dataclass(frozen=True)
class MarsSettings:
    """The choices of the operator; all of them have a usual value.

    Attributes
    ----------
    nets
        A file of trained networks, as ``stretto train mars --save`` writes it; by default those that come with Stretto.
    default
        The order or network that is followed unless another one is surely better.
    learns
        Whether lessons are taken while the queue is played.
    by
        Who decides whom to follow, as in ``Selection``.
    """

    nets: str | None = None
    default: str | None = None
    cost: Cost = USUAL
    learns: bool = False
    by: str = EVIDENCE

    def __post_init__(self) -> None:
        Selection(by=self.by)

    def candidates(self, *, starts_jobs: bool = True) -> list[MarsNet]:
        """Return what is chosen from, the default first.

        Parameters
        ----------
        starts_jobs
            Whether jobs can be held back; where they cannot, a trained network is asked for its order only.
        """
        nets = None if self.nets is None else _read(self.nets)
        if nets is None and self.default == TRAINED:
            message = f"{TRAINED!r} is in the file that stretto train mars --save wrote; name it with --nets FILE"
            raise InvalidInput(message, field="default")
        if nets is not None and self.learns and any(net.name == LEARNED for net in nets):
            raise InvalidInput(f"{LEARNED!r} is the name of what is learned on the way", source=self.nets, field="nets")
        if nets is not None and not starts_jobs:
            nets = [replace(net, net=net.net._replace(spare=np.zeros(1))) for net in nets]
        return candidates_of(default=self.default, nets=nets, starts_jobs=starts_jobs)

    def spec(self) -> dict[str, Any]:
        """Return what is not as usual, flat and by name."""
        told = {"nets": self.nets, "default": self.default, **asdict(self.cost), "learns": self.learns, "by": self.by}
        usual = {"nets": None, "default": None, **asdict(USUAL), "learns": False, "by": EVIDENCE}
        return {name: value for name, value in told.items() if value != usual[name]}


def _read(path: str) -> list[MarsNet]:
    try:
        return load_nets(path)[0]
    except InvalidInput as error:
        raise error.at(path) from None
    except (KeyError, TypeError):
        raise InvalidInput("does not say which networks it holds", source=path, field="nets") from None
