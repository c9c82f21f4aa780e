"""Training of a scoring network by evolution on windows of recorded queues.

What is least: the bounded slowdown over what the best classic order gets on the same window, for slowdowns have
heavy tails; the weight of a window grows with the root of what that order gets, and half of the objective counts the
plain sum. A low mean is easily bought with starvation, so the longest wait is bounded by that of a named classic, with
a steep penalty beyond. Windows for validation are other windows; what did best there is kept.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from stretto.core.csr import Floats
from stretto.errors import InvalidInput, UnknownName
from stretto.files.checked_arrays import take, take_indices, whole
from stretto.learning.trainer import Arrays, Meta
from stretto.queues.mars.candidates import plain_nets
from stretto.queues.mars.cma import Cma
from stretto.queues.mars.cost import BOUNDED_SLOWDOWN, MEASURES
from stretto.queues.mars.kernels import policy as features
from stretto.queues.mars.network import CLASSICS, MarsNet, classic_net, net_of
from stretto.queues.mars.windows import OPPONENTS, Figures, Window

#: Features that decide who may pass the head of the queue; the last is constant.
GATE = (
    features.LOG_ESTIMATE,
    features.LOG_PROCS,
    features.LOG_BELIEVED,
    features.LOG_WAIT,
    features.QUEUE_LENGTH,
    features.FREE_SHARE,
    features.QUEUE_WORK,
    features.NUM_FEATURES,
)
_NUM_LINEAR = features.NUM_JOB + len(GATE) + 3
_PATIENCE, _TRUST, _RESERVE = range(_NUM_LINEAR - 3, _NUM_LINEAR)
#: How far each kind of weight is varied at first.
_SKIP_SCALE, _AREA_SCALE, _GATE_SCALE, _PATIENCE_SCALE, _TRUST_SCALE = 1.0, 0.7, 0.5, 0.7, 0.5
#: The reserve share is varied by a few hundredths of the machine and never above a third of it.
_RESERVE_SCALE, _MOST_RESERVE = 0.05, 0.33
#: Training windows on which networks to begin with are compared.
_NUM_TRIED = 24
#: A patience that nothing outlives, and that training does not find the end of.
_ENDLESS_S = math.exp(38.0)
_PATIENCE_UNIT = 2.0  # the patience is varied on a logarithmic scale, by half of what other weights are


@dataclass(frozen=True)
class Objective:
    """The cost that is minimized.

    Attributes
    ----------
    time, money
        Weights of slowdown and cost; on one machine, the cost is that of keeping it until the last job ends.
    variant
        How slowdown is measured: one of ``MEASURES`` in ``queues/mars/cost.py``.
    average
        ``mixed``: half the weighted mean of ratios, half the ratio of sums, for windows of one log. ``geometric``: the
        geometric mean of ratios, for windows of many.
    wait_of
        The classic order whose longest wait is the limit.
    wait_share, wait_penalty
        From this share of the limit on, each further part of it costs so much; both for the mean over windows and for
        the longest wait of all.
    """

    time: float = 1.0
    money: float = 0.0
    variant: str = BOUNDED_SLOWDOWN
    average: str = "mixed"
    wait_of: str = "f4"
    wait_share: float = 0.9
    wait_penalty: float = 3.0

    def __post_init__(self) -> None:
        if self.wait_of not in OPPONENTS:
            raise UnknownName("order", self.wait_of, OPPONENTS)
        if self.variant not in MEASURES:
            raise UnknownName("variant", self.variant, MEASURES)
        if self.average not in ("mixed", "geometric"):
            raise UnknownName("average", self.average, ("mixed", "geometric"))
        for name in ("time", "money", "wait_share", "wait_penalty"):
            if not 0 <= getattr(self, name) < math.inf:
                raise InvalidInput(f"{getattr(self, name)} must be finite and not negative", field=name)

    def value(self, windows: Sequence[Window], found: Sequence[Figures]) -> float:
        """Return what a policy is worth that got these figures on these windows."""
        ours = np.array([self._figure(one) for one in found])
        best = np.array([min(self._figure(one) for one in window.classics.values()) for window in windows])
        weight = np.sqrt(best)
        if self.average == "geometric":
            slowdown = math.exp(float(np.log(ours / best).mean()))
        else:
            slowdown = 0.5 * float(weight @ (ours / best) / weight.sum()) + 0.5 * float(ours.sum() / best.sum())
        span = sum(one.makespan_s for one in found) / sum(w.classics[self.wait_of].makespan_s for w in windows)
        limit = np.array([window.classics[self.wait_of].max_wait_s for window in windows])
        wait = np.array([one.max_wait_s for one in found])
        over = sum(max(0.0, float(f(wait) / max(f(limit), 1.0)) - self.wait_share) for f in (np.mean, np.max))
        return self.time * slowdown + self.money * span + self.wait_penalty * over

    def _figure(self, one: Figures) -> float:
        return one.cost[self.variant]


@dataclass(frozen=True)
class Evolution:
    """How to search.

    Attributes
    ----------
    windows_per_generation
        Each generation is judged on so many windows, the same for all of it.
    validate_every
        Generations between looks at the validation windows.
    hidden
        Hidden units that are trained too; none leaves the score linear.
    use_submission
        Whether the score may depend on the absolute submission time, as F1 to F4 do.
    use_patience
        Whether jobs that have waited for long come first; how long is trained.
    """

    population: int = 24
    sigma: float = 0.25
    windows_per_generation: int = 16
    validate_every: int = 10
    hidden: int = 0
    use_submission: bool = True
    use_patience: bool = True


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
    starts
        Networks to begin with: the one that does best on some training windows is taken. By default, the best classic
        and the orders that trust forecasts.
    """

    def __init__(
        self,
        train: Sequence[Window],
        validation: Sequence[Window],
        *,
        seed: int,
        objective: Objective | None = None,
        evolution: Evolution | None = None,
        starts: Sequence[MarsNet] = (),
        num_threads: int = 2,
    ) -> None:
        if not train or not validation:
            raise InvalidInput("training needs windows, and others for validation", field="windows")
        self.objective = objective or Objective()
        self.evolution = evolution or Evolution()
        self._train, self._validation = list(train), list(validation)
        self._rng = np.random.default_rng(seed)
        self._threads = num_threads
        first = self._best_of(starts or [classic_net(self.best_classic()), *plain_nets()])
        if self.evolution.hidden and not first.num_hidden:
            first = first.with_hidden(self.evolution.hidden, seed)
        self._first = first
        limit = float(np.mean([window.classics[self.objective.wait_of].max_wait_s for window in self._train]))
        patience_s = max(1.5 * limit, 60.0) if self.evolution.use_patience else _ENDLESS_S
        self._mean = to_vector(first, patience_s=patience_s)
        self._cma = Cma(self._mean, self.evolution.sigma, self._scale(), self.evolution.population)
        self._order = self._rng.permutation(len(self._train))
        self._place = 0
        self._best = self._mean.copy()
        self._best_value = math.inf

    def best_classic(self) -> str:
        """Return the order with the least objective on the training windows, of those that a network can express."""

        def value(name: str) -> float:
            return self.objective.value(self._train, [window.classics[name] for window in self._train])

        return min((name for name in OPPONENTS if name in CLASSICS), key=value)

    def _best_of(self, nets: Sequence[MarsNet]) -> MarsNet:
        """Return the network with the least objective on the first training windows."""
        windows = self._train[:_NUM_TRIED]
        with ThreadPoolExecutor(self._threads) as executor:
            values = list(
                executor.map(
                    lambda net: self.objective.value(windows, [self._play(net.net, one) for one in windows]),
                    nets,
                )
            )
        return nets[int(np.argmin(values))]

    def _scale(self) -> Floats:
        scale = np.full(len(self._mean), _SKIP_SCALE)
        scale[list(range(features.F1, features.F4_BELIEVED + 1))] = _AREA_SCALE
        scale[features.SUBMITTED] = 0.5 if self.evolution.use_submission else 1e-6
        scale[features.NUM_JOB : features.NUM_JOB + len(GATE)] = _GATE_SCALE
        scale[_PATIENCE], scale[_TRUST], scale[_RESERVE] = _PATIENCE_SCALE, _TRUST_SCALE, _RESERVE_SCALE
        scale[_NUM_LINEAR:] = 0.3
        return scale

    @property
    def generation(self) -> int:
        return self._cma.generation

    @property
    def start(self) -> MarsNet:
        """The network that the training began with."""
        return self._first

    def net(self, name: str = "mars") -> MarsNet:
        """Return the network that did best on the validation windows."""
        return to_net(self._best, name, self._first)

    @property
    def best_validation(self) -> float:
        return self._best_value

    def step(self) -> Generation:
        """Play and learn from one generation."""
        samples = self._cma.ask(self._rng)
        if not self.evolution.use_submission:
            samples[:, features.SUBMITTED] = 0.0
        windows = self._next_windows()
        with ThreadPoolExecutor(self._threads) as executor:
            values = np.array(list(executor.map(lambda one: self._value(one, windows), samples)))
            self._cma.tell(values)
            validation = math.nan
            if self._cma.generation == 1 or self._cma.generation % self.evolution.validate_every == 0:
                validation = self._validate(executor)
        num_jobs = len(samples) * sum(len(window.jobs.submit) for window in windows)
        return Generation(self._cma.generation, float(values.min()), validation, self._best_value, num_jobs)

    def _next_windows(self) -> list[Window]:
        count = min(self.evolution.windows_per_generation, len(self._train))
        if self._place + count > len(self._train):
            self._order = self._rng.permutation(len(self._train))
            self._place = 0
        chosen = self._order[self._place : self._place + count]
        self._place += count
        return [self._train[k] for k in chosen]

    def _value(self, vector: Floats, windows: Sequence[Window]) -> float:
        net = to_net(vector, "", self._first).net
        return self.objective.value(windows, [self._play(net, window) for window in windows])

    def _play(self, net: features.ScoreNet, window: Window) -> Figures:
        return window.play(net, measures=(self.objective.variant,))

    def _validate(self, executor: ThreadPoolExecutor) -> float:
        candidates = [self._cma.mean] if math.isfinite(self._best_value) else [self._mean, self._cma.mean]
        value = math.nan
        for vector in candidates:
            if not self.evolution.use_submission:
                vector = vector.copy()
                vector[features.SUBMITTED] = 0.0
            net = to_net(vector, "", self._first).net
            found = list(executor.map(partial(self._play, net), self._validation))
            value = self.objective.value(self._validation, found)
            if value < self._best_value:
                self._best, self._best_value = vector.copy(), value
        return value

    def state(self) -> tuple[Arrays, Meta]:
        """Return everything that the next step depends on."""
        arrays: Arrays = {f"cma.{name}": array for name, array in self._cma.state().items()}
        arrays |= {"best": self._best, "order": self._order, "best_value": np.array(self._best_value)}
        return arrays, {"rng": self._rng.bit_generator.state, "place": self._place}

    def restore(self, arrays: Mapping[str, NDArray[np.generic]], meta: Mapping[str, object]) -> None:
        """Continue from what :meth:`state` returned; the windows must be the same."""
        best = take(arrays, "best", self._best.shape)
        best_value = take(arrays, "best_value", (), is_finite=False)
        order = take_indices(arrays, "order", self._order.shape, max(len(self._order), 1))
        place, rng = whole(meta.get("place"), "place"), meta.get("rng")
        if not isinstance(rng, dict):
            raise InvalidInput("is missing: the state of the random generator", field="rng")
        self._cma.restore({name.removeprefix("cma."): arrays[name] for name in arrays if name.startswith("cma.")})
        self._best, self._best_value = np.array(best), float(best_value)
        self._order, self._place = np.array(order), place
        self._rng.bit_generator.state = rng


def to_vector(net: MarsNet, *, patience_s: float) -> Floats:
    """Return the weights that are trained, in one row; an endless patience becomes the given one."""
    n = net.net
    patience = float(n.patience[0]) if math.isfinite(n.patience[0]) else patience_s
    linear = [n.skip, n.gate[list(GATE)], np.array([_PATIENCE_UNIT * math.log(patience)]), n.trust, n.reserve]
    return np.concatenate([*linear, n.hidden.ravel(), n.bias, n.out])


def to_net(vector: Floats, name: str, first: MarsNet) -> MarsNet:
    """Return the network of a row of weights; it is as large as the first one, and goes by the same beliefs."""
    gate = np.zeros(features.NUM_FEATURES + 1)
    gate[list(GATE)] = vector[features.NUM_JOB : features.NUM_JOB + len(GATE)]
    patience = math.exp(min(40.0, vector[_PATIENCE] / _PATIENCE_UNIT))
    rest = vector[_NUM_LINEAR:]
    num_hidden = first.num_hidden
    size = num_hidden * features.NUM_FEATURES
    return net_of(
        name,
        {
            "skip": vector[: features.NUM_JOB],
            "gate": gate,
            "hidden": rest[:size].reshape(num_hidden, features.NUM_FEATURES),
            "bias": rest[size : size + num_hidden],
            "out": rest[size + num_hidden :],
            "patience": np.array([patience]),
            "trust": np.clip(vector[_TRUST : _TRUST + 1], 0.0, 1.0),
            "reserve": np.clip(vector[_RESERVE : _RESERVE + 1], 0.0, _MOST_RESERVE),
            "foresight": first.net.foresight,
        },
    )
