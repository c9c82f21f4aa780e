"""Training of a scoring network by evolution on windows of recorded queues.

What is least: the logarithm of the cost over that of the network with which the training began, on the same window and
inside the same promises, because costs have heavy tails; and beyond twice the longest wait of the operator's policy,
the logarithm of the longest wait, because a low mean is easily bought with starvation. Windows for validation are other
windows; what did best there is kept.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from stretto.core.csr import Floats
from stretto.errors import InvalidInput
from stretto.files.checked_arrays import take, take_indices, whole
from stretto.learning.cma import Cma
from stretto.learning.trainer import Arrays, Meta
from stretto.queues.mars.kernels import score as features
from stretto.queues.mars.network import MarsNet
from stretto.queues.mars.windows import Window, WindowFigures, num_jobs_of
from stretto.queues.promises.slack import Slack

_NUM_WEIGHTS = features.NUM_JOB
_RESERVE = _NUM_WEIGHTS
#: How far weights are varied at first: of the features, and of the number of short jobs for which room is left.
_WEIGHT_SCALE, _RESERVE_SCALE = 0.75, 0.5
_MOST_RESERVE = 20.0
#: Longest waits beyond so many times that of the policy cost; what each logarithm of them costs.
_WAIT_RATIO, _WAIT_PENALTY = 2.0, 0.3
#: No window counts more than a factor of so many logarithms.
_MOST_LOG = 1.0
_WAIT_FLOOR_S = 600.0


class Generation(NamedTuple):
    """What one generation reports; what was not measured is NaN."""

    number: int
    train: float
    validation: float
    best_validation: float
    num_jobs: int  # scheduled in this generation


class MarsTrainer:
    """One training; the same seed and windows give the same network.

    Parameters
    ----------
    start
        The network to begin with.
    slack
        Of the promises inside which it learns.
    """

    def __init__(
        self,
        train: Sequence[Window],
        validation: Sequence[Window],
        start: MarsNet,
        *,
        seed: int,
        slack: Slack,
        population: int = 12,
        windows_per_generation: int = 4,
        validate_every: int = 4,
        sigma: float = 0.3,
        num_threads: int = 2,
    ) -> None:
        if not train or not validation:
            raise InvalidInput("training needs windows, and others for validation", field="windows")
        self._train, self._validation = list(train), list(validation)
        self.start, self._slack = start, slack
        self._rng = np.random.default_rng(seed)
        self._threads, self._count, self._every = num_threads, windows_per_generation, validate_every
        self._first = to_vector(start)
        scale = np.array([*np.full(_NUM_WEIGHTS, _WEIGHT_SCALE), _RESERVE_SCALE])
        self._cma = Cma(self._first, sigma, scale, population)
        self._order = self._rng.permutation(len(self._train))
        self._place = 0
        self._base: dict[int, WindowFigures] = {}  # what the first network made of windows
        self._best = self._first.copy()
        self._best_value = 0.0  # that of the first network, by definition

    @property
    def generation(self) -> int:
        return self._cma.generation

    def net(self, name: str) -> MarsNet:
        """Return the network that did best on the validation windows."""
        return to_net(self._best, name)

    @property
    def best_validation(self) -> float:
        return self._best_value

    def step(self) -> Generation:
        """Play and learn from one generation."""
        samples = self._cma.ask(self._rng)
        windows = self._next_windows()
        with ThreadPoolExecutor(self._threads) as executor:
            self._fill_base(windows, executor)
            values = np.array(list(executor.map(lambda one: self._value(one, windows), samples)))
            self._cma.tell(values)
            validation = math.nan
            if self._cma.generation % self._every == 0:
                self._fill_base(self._validation, executor)
                validation = self._value(self._cma.mean, self._validation)
                if validation < self._best_value:
                    self._best, self._best_value = self._cma.mean.copy(), validation
        num_jobs = len(samples) * num_jobs_of(windows)
        return Generation(self._cma.generation, float(values.min()), validation, self._best_value, num_jobs)

    def _next_windows(self) -> list[Window]:
        count = min(self._count, len(self._train))
        if self._place + count > len(self._train):
            self._order = self._rng.permutation(len(self._train))
            self._place = 0
        chosen = self._order[self._place : self._place + count]
        self._place += count
        return [self._train[k] for k in chosen]

    def _fill_base(self, windows: Sequence[Window], executor: ThreadPoolExecutor) -> None:
        """Play the first network where it has not been played yet."""
        missing = [one for one in windows if id(one) not in self._base]
        found = executor.map(lambda one: one.play(self.start, self._slack), missing)
        self._base.update({id(one): figures for one, figures in zip(missing, found, strict=True)})

    def _value(self, vector: Floats, windows: Sequence[Window]) -> float:
        net = to_net(vector, "")
        return float(np.mean([self._loss(one, one.play(net, self._slack)) for one in windows]))

    def _loss(self, window: Window, found: WindowFigures) -> float:
        base = self._base[id(window)]
        gain = math.log(max(found.cost, 1e-9) / max(base.cost, 1e-9))
        return float(np.clip(gain, -_MOST_LOG, _MOST_LOG)) + _excess(window, found) - _excess(window, base)

    def state(self) -> tuple[Arrays, Meta]:
        """Return everything that the next step depends on."""
        arrays: Arrays = {f"cma.{name}": array for name, array in self._cma.state().items()}
        arrays |= {"best": self._best, "order": self._order, "best_value": np.array(self._best_value)}
        return arrays, {"rng": self._rng.bit_generator.state, "place": self._place}

    def restore(self, arrays: Mapping[str, NDArray[np.generic]], meta: Mapping[str, object]) -> None:
        """Continue from what :meth:`state` returned; the windows must be the same."""
        best = take(arrays, "best", self._best.shape)
        best_value = take(arrays, "best_value", ())
        order = take_indices(arrays, "order", self._order.shape, max(len(self._order), 1))
        place, rng = whole(meta.get("place"), "place"), meta.get("rng")
        if not isinstance(rng, dict):
            raise InvalidInput("is missing: the state of the random generator", field="rng")
        self._cma.restore({name.removeprefix("cma."): arrays[name] for name in arrays if name.startswith("cma.")})
        self._best, self._best_value = np.array(best), float(best_value)
        self._order, self._place = np.array(order), place
        self._rng.bit_generator.state = rng


def _excess(window: Window, found: WindowFigures) -> float:
    """Return what the longest wait costs."""
    ratio = (found.longest_s + _WAIT_FLOOR_S) / (window.policy.longest_s + _WAIT_FLOOR_S)
    return _WAIT_PENALTY * max(0.0, math.log(ratio / _WAIT_RATIO))


def to_vector(net: MarsNet) -> Floats:
    """Return the weights that are trained, in one row."""
    return np.concatenate([net.net.weight, net.net.reserve])


def to_net(vector: Floats, name: str) -> MarsNet:
    """Return the network of a row of weights."""
    reserve = np.clip(vector[_RESERVE : _RESERVE + 1], 0.0, _MOST_RESERVE)
    return MarsNet(name, features.ScoreNet(np.array(vector[:_NUM_WEIGHTS]), reserve))
