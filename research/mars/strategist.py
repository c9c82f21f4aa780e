"""An actor-critic over strategies: from what is seen of every candidate, whom to follow, and what that will bring.

The actor is one small network for all candidates, so that any number of them may be there in any order: a linear
part, whose first weights are the prior (what was cheap in its shadow, and what the look-ahead favours, is likely to be
good; whoever is followed stays), and a hidden layer that training adds (``strategist_trainer.py``). The critic
says what following the actor brings, in logarithms of cost saved against the default.

It goes on learning where it is used: when an epoch has been played by all shadows, everybody's reward in it is known,
and both networks take one step (:meth:`Strategist.learn`). Plain numpy; nothing here needs an optimiser.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from research.mars import observation
from stretto.core.csr import Floats
from stretto.errors import InvalidInput

#: What comes with Stretto; ``python -m research.mars.make_strategist ship`` makes it.
SHIPPED = Path(__file__).with_name("strategist.npz")
NUM_HIDDEN = 16
#: Slope of the hidden layers below zero.
LEAK = 0.1
#: The critic sees the candidate that is followed and the one that has been cheapest.
NUM_CRITIC = 2 * observation.NUM_INPUTS
_PARTS = ("linear", "hidden", "bias", "out", "critic", "critic_bias", "critic_out", "threshold")
#: What a step of learning while in use is multiplied with.
_RATE = 0.01


@dataclass(frozen=True, eq=False)
class Strategist:
    """Weights; H hidden units.

    Attributes
    ----------
    threshold
        The least probability at which its favourite is followed: validated on logs that it was not trained on.
    """

    linear: Floats  # [NUM_INPUTS]
    hidden: Floats  # [NUM_INPUTS, H]
    bias: Floats  # [H]
    out: Floats  # [H]
    critic: Floats  # [NUM_CRITIC, H]
    critic_bias: Floats  # [H]
    critic_out: Floats  # [H]
    threshold: Floats  # [1]

    def __post_init__(self) -> None:
        num = len(self.bias)
        shapes = (
            (observation.NUM_INPUTS,),
            (observation.NUM_INPUTS, num),
            (num,),
            (num,),
            (NUM_CRITIC, num),
            (num,),
            (num,),
            (1,),
        )
        for part, shape in zip(_PARTS, shapes, strict=True):
            array = getattr(self, part)
            if array.shape != shape:
                raise InvalidInput(f"{part} has shape {array.shape}, expected {shape}", field=part)
            if not np.all(np.isfinite(array)):
                raise InvalidInput(f"{part} holds a value that is not a number", field=part)

    def probabilities(self, rows: Floats) -> Floats:
        """Return with which probability each candidate is the one to follow; [K]. Rows of NaN are out."""
        is_in = np.asarray(np.isfinite(rows).all(axis=1))
        x = np.where(is_in[:, None], rows, 0.0)
        z = x @ self.hidden + self.bias
        logit = np.where(is_in, x @ self.linear + np.maximum(z, LEAK * z) @ self.out, -np.inf)
        likely = np.exp(logit - logit.max())
        found: Floats = likely / likely.sum()
        return found

    def value(self, rows: Floats) -> float:
        """Return what the critic expects from here on."""
        z = critic_inputs(rows) @ self.critic + self.critic_bias
        return float(np.maximum(z, LEAK * z) @ self.critic_out)

    def learn(self, rows: Floats, reward: Floats, following: float, *, discount: float) -> Strategist:
        """Return the strategist after one step on an epoch whose rewards are known for every candidate.

        Parameters
        ----------
        rows
            What was seen when the choice was made; [K, NUM_INPUTS].
        reward
            What each candidate would have brought; [K].
        following
            The value of what was seen one epoch later.
        """
        is_in = np.asarray(np.isfinite(rows).all(axis=1) & np.isfinite(reward))
        x = np.where(is_in[:, None], rows, 0.0)
        likely = np.where(is_in, self.probabilities(rows), 0.0)
        likely /= max(likely.sum(), 1e-12)
        gained = np.where(is_in, reward, 0.0) + discount * following
        surprise = float(likely @ gained) - self.value(rows)
        # Of the mean reward, by the logits: every candidate's advantage over the mean, as often as it is chosen.
        slope = likely * (gained - likely @ gained)
        z = x @ self.hidden + self.bias
        unit, bend = np.maximum(z, LEAK * z), np.where(z > 0.0, 1.0, LEAK)
        back = slope[:, None] * bend * self.out
        seen = critic_inputs(rows)
        u = seen @ self.critic + self.critic_bias
        told = surprise * np.where(u > 0.0, 1.0, LEAK) * self.critic_out
        return replace(
            self,
            linear=self.linear + _RATE * (slope @ x),
            hidden=self.hidden + _RATE * (x.T @ back),
            bias=self.bias + _RATE * back.sum(axis=0),
            out=self.out + _RATE * (slope @ unit),
            critic=self.critic + _RATE * np.outer(seen, told),
            critic_bias=self.critic_bias + _RATE * told,
            critic_out=self.critic_out + _RATE * surprise * np.maximum(u, LEAK * u),
        )

    def to_arrays(self) -> dict[str, Floats]:
        """Return the weights by name."""
        return {part: getattr(self, part) for part in _PARTS}


def critic_inputs(rows: Floats) -> Floats:
    """Return what the critic sees: who is followed, and who has been cheapest; [NUM_CRITIC]."""
    followed = rows[int(np.argmax(np.nan_to_num(rows[:, observation.IS_FOLLOWED])))]
    cheapest = rows[int(np.nanargmin(rows[:, observation.ALL]))]
    return np.concatenate([np.nan_to_num(followed), cheapest])


def prior() -> Strategist:
    """Return a strategist that has learned nothing: it goes by shadows and the look-ahead, and likes to stay."""
    linear = np.zeros(observation.NUM_INPUTS)
    linear[[observation.ALL, observation.LATELY, observation.SURE, observation.AHEAD]] = -2.0, -1.0, 5.0, -0.2
    linear[[observation.IS_FOLLOWED, observation.IS_DEFAULT, observation.IS_PENALIZED]] = 2.0, 2.0, -0.5
    rng = np.random.default_rng(0)
    hidden = rng.normal(size=(observation.NUM_INPUTS, NUM_HIDDEN)) * 0.3
    critic = rng.normal(size=(NUM_CRITIC, NUM_HIDDEN)) * 0.3
    zeros = np.zeros(NUM_HIDDEN)
    return Strategist(linear, hidden, zeros, zeros.copy(), critic, zeros.copy(), zeros.copy(), np.array([0.5]))


@functools.cache
def shipped() -> Strategist:
    """Return the strategist that comes with Stretto."""
    return load_strategist(SHIPPED)[0]


def strategist_of(arrays: Mapping[str, Any]) -> Strategist:
    """Return the strategist of some arrays."""
    from stretto.files.checked_arrays import take

    missing = [part for part in _PARTS if part not in arrays]
    if missing:
        raise InvalidInput(f"the strategist has no {missing[0]}", field=missing[0])
    for part, like in prior().to_arrays().items():
        if np.ndim(arrays[part]) != like.ndim:
            raise InvalidInput(f"has {np.ndim(arrays[part])} dimensions, expected {like.ndim}", field=part)
        take(arrays, part, np.shape(arrays[part]))
    return Strategist(*(np.ascontiguousarray(arrays[part], np.float64) for part in _PARTS))


def save_strategist(path: str | Path, strategist: Strategist, meta: Mapping[str, Any]) -> None:
    """Write the weights to a file."""
    from stretto.files import checkpoint

    checkpoint.save(path, strategist.to_arrays(), {"kind": "mars-strategist", **meta})


def load_strategist(path: str | Path) -> tuple[Strategist, dict[str, Any]]:
    """Read weights and what is said of them."""
    from stretto.files import checkpoint

    arrays, meta = checkpoint.load(path)
    if meta.get("kind") != "mars-strategist":
        raise InvalidInput("the checkpoint does not hold a strategist of MARS", source=str(path), field="kind")
    try:
        return strategist_of(arrays), meta
    except InvalidInput as error:
        raise error.at(str(path)) from None
