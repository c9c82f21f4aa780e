"""The trained networks that come with Stretto, each the pupil of a heuristic, and when to rely on one of them."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from research.mars.confidence import INPUTS, Confidence, observe

from stretto.core.csr import Floats
from stretto.core.trace import QueueArrays
from stretto.errors import InvalidInput
from stretto.queues.mars.network import MarsNet, named_nets, net_of

#: What comes with Stretto; ``python -m research.mars.make_ensemble ship`` makes it.
SHIPPED = Path(__file__).with_name("ensemble.npz")
_KIND = "mars-ensemble"
_ARRAYS = ("mean", "scale", "weight")
_NUMBERS = ("bias", "slope", "shift", "threshold")


@dataclass(frozen=True, eq=False)
class Ensemble:
    """Some networks, and a model of when one is likely to be cheaper than the default."""

    members: tuple[MarsNet, ...]
    confidence: Confidence

    def __post_init__(self) -> None:
        names = [net.name for net in self.members]
        if not names or len(set(names)) < len(names):
            raise InvalidInput("an ensemble needs members, each with a name of its own", field="members")

    @property
    def is_ever_sure(self) -> bool:
        """Whether a member can be followed at all: no probability reaches a threshold above one."""
        return self.confidence.threshold <= 1.0

    def allowed(
        self,
        names: Sequence[str],
        epochs: Floats,
        wait: Floats,
        jobs: QueueArrays,
        num_played: int,
        num_procs: int,
    ) -> NDArray[np.bool_]:
        """Say which candidates may be followed: all but members that are not sure enough, or not watched; [K].

        Parameters
        ----------
        names
            Of the candidates, the default first.
        epochs, wait, jobs, num_played, num_procs
            As for :func:`observe`; one that is not watched has infinite cost.
        """
        members = [net.name for net in self.members]
        is_member = np.array([name in members for name in names])
        if not is_member.any() or not self.is_ever_sure:
            return ~is_member
        is_watched = np.asarray(np.isfinite(epochs).all(axis=1))
        seen = observe(np.where(is_watched[:, None], epochs, epochs[0]), wait, jobs, num_played, num_procs)
        return ~is_member | (is_watched & self.confidence.is_sure(seen))


@functools.cache
def shipped_ensemble() -> Ensemble:
    """Return the ensemble that comes with Stretto."""
    return load_ensemble(SHIPPED)[0]


def save_ensemble(path: str | Path, ensemble: Ensemble, meta: Mapping[str, Any]) -> None:
    """Write networks and confidence to one file."""
    from stretto.files import checkpoint

    confidence = ensemble.confidence
    arrays = {f"{net.name}.{part}": array for net in ensemble.members for part, array in net.to_arrays().items()}
    arrays |= {f"confidence.{name}": getattr(confidence, name) for name in _ARRAYS}
    arrays |= {f"confidence.{name}": np.array(getattr(confidence, name)) for name in _NUMBERS}
    about = {"kind": _KIND, "nets": [net.name for net in ensemble.members], "inputs": list(INPUTS)}
    checkpoint.save(path, arrays, {**meta, **about})


def load_ensemble(path: str | Path) -> tuple[Ensemble, dict[str, Any]]:
    """Read an ensemble and what is said of it."""
    from stretto.files import checkpoint
    from stretto.files.checked_arrays import take

    arrays, meta = checkpoint.load(path)
    if meta.get("kind") != _KIND:
        raise InvalidInput("the checkpoint does not hold an ensemble of MARS", source=str(path), field="kind")
    if meta.get("inputs") != list(INPUTS):
        raise InvalidInput("its confidence is about other inputs than ours", source=str(path), field="inputs")
    parts: dict[str, Any] = {}
    for name in (*_ARRAYS, *_NUMBERS):
        if f"confidence.{name}" not in arrays:
            raise InvalidInput(f"the confidence has no {name}", source=str(path), field=name)
        shape = (len(INPUTS),) if name in _ARRAYS else ()
        values = take(arrays, f"confidence.{name}", shape, source=str(path)).astype(np.float64)
        parts[name] = values if name in _ARRAYS else float(values)
    try:
        members = tuple(
            net_of(name, {key.removeprefix(f"{name}."): arrays[key] for key in arrays if key.startswith(f"{name}.")})
            for name in named_nets(meta, str(path))
        )
        return Ensemble(members, Confidence(**parts)), meta
    except InvalidInput as error:
        raise error.at(str(path)) from None
