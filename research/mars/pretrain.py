"""Networks that are taught by a heuristic on the workloads where it is best, and then improved by reinforcement.

A window belongs to the heuristic that is best on it. Its pupil, a network with a hidden layer whose score is zero at
first, learns to pick what the heuristic would (imitation in the states that the pupil meets), and goes on by PPO on the
windows of its teacher. Other windows, of later jobs, say what is kept: the best of what was seen there, and never what
is worse than the teacher.

A pupil reserves room by user estimates, as EASY does, or by forecasts, and keeps free what the
default order does: as its teacher clearly did better on the windows for training.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import jax.numpy as jnp
import numpy as np
from research.mars.reinforcement import MarsLearner, Reinforcement, imitate, init_params, scores

from stretto.errors import InvalidInput, UnknownName
from stretto.queues.mars.candidates import default_net
from stretto.queues.mars.network import CLASSICS, MarsNet, classic_net
from stretto.queues.mars.windows import Window

#: What comes before the name of the teacher in that of a member.
PREFIX = "net-"
#: Forecasts are relied on where the teacher gains this share by them.
_CLEARLY = 0.02
#: On windows where the best order has less slowdown there is nothing to learn.
_BUSY = 1.3
_RULES = Reinforcement(windows_per_update=8, steps=4)


@dataclass(frozen=True)
class Schooling:
    """How to teach.

    Attributes
    ----------
    least_windows
        A heuristic with fewer windows to train on has no pupil.
    most_members
        Pupils there are at most, of the heuristics with the most windows: each is a shadow replay more.
    num_batches, imitation_steps, imitation_rate
        Of imitation: batches of windows, gradient steps for each, and their size.
    num_updates, validate_every
        Of reinforcement.
    """

    least_windows: int = 40
    most_members: int = 4
    num_batches: int = 12
    imitation_steps: int = 15
    imitation_rate: float = 0.05
    num_updates: int = 60
    validate_every: int = 10
    rules: Reinforcement = _RULES

    def __post_init__(self) -> None:
        for name in ("least_windows", "most_members", "num_batches", "imitation_steps", "validate_every"):
            if getattr(self, name) < 1:
                raise InvalidInput(f"{getattr(self, name)} must be at least 1", field=name)
        if self.num_updates < 0:
            raise InvalidInput(f"{self.num_updates} must not be negative", field="num_updates")


@dataclass(frozen=True, eq=False)
class Taught:
    """A member of the ensemble, and how it came about.

    Attributes
    ----------
    agreement
        How often the pupil picked what its teacher would, on validation windows, after imitation.
    has_foresight
        Whether it reserves room by forecasts, and keeps some free.
    imitated, to_teacher, to_default
        Geometric mean, over validation windows, of the slowdown over that of the teacher: after imitation, and of what
        was kept; and of the latter over that of the default order.
    kept
        What was kept: ``teacher``, ``imitation``, or ``update N``.
    """

    net: MarsNet
    teacher: str
    num_train: int
    num_validation: int
    agreement: float
    has_foresight: bool
    imitated: float
    to_teacher: float
    to_default: float
    kept: str


def is_busy(window: Window) -> bool:
    """Say whether jobs have to wait, whatever the order."""
    return min(figures.slowdown for figures in window.classics.values()) >= _BUSY


def by_teacher(windows: Sequence[Window]) -> dict[str, list[Window]]:
    """Return the windows of each heuristic: those on which it is best."""
    found: dict[str, list[Window]] = defaultdict(list)
    for window in windows:
        found[min(window.classics, key=lambda name: window.classics[name].slowdown)].append(window)
    return dict(found)


def pretrain(
    train: Sequence[Window],
    validation: Sequence[Window],
    *,
    seed: int,
    schooling: Schooling | None = None,
    num_threads: int = 1,
    on_news: Callable[[str], None] = lambda _: None,
) -> list[Taught]:
    """Return a member for each heuristic that is best on enough windows; the same seed gives the same members."""
    how = schooling or Schooling()
    theirs, others = by_teacher(train), by_teacher(validation)
    able = [name for name in theirs if len(theirs[name]) >= how.least_windows and name in others]
    able.sort(key=lambda name: (-len(theirs[name]), name))
    if not able:
        raise InvalidInput("no heuristic is best on enough windows", field="windows")
    return [
        school(name, theirs[name], others[name], seed=seed, schooling=how, num_threads=num_threads, on_news=on_news)
        for name in able[: how.most_members]
    ]


def school(
    teacher: str,
    train: Sequence[Window],
    validation: Sequence[Window],
    *,
    seed: int,
    schooling: Schooling,
    num_threads: int = 1,
    on_news: Callable[[str], None] = lambda _: None,
) -> Taught:
    """Teach one network, let it improve, and keep what was best on the validation windows."""
    if teacher not in CLASSICS:
        raise UnknownName("order of MARS", teacher, CLASSICS)
    first = setting_of(teacher, train)
    order = classic_net(teacher)
    blank = replace(first, net=first.net._replace(skip=np.zeros_like(first.net.skip)))
    learner = MarsLearner(train, blank, seed=seed, rules=schooling.rules, num_threads=num_threads)
    imitate(learner, order, schooling.num_batches, steps=schooling.imitation_steps, rate=schooling.imitation_rate)
    agreement = agreement_of(learner.net(), order, validation, seed=seed, rules=schooling.rules)
    theirs = [window.classics[teacher].slowdown for window in validation]
    tried = {"teacher": first, "imitation": learner.net()}
    worth = {name: ratio_to(theirs, net, validation) for name, net in tried.items()}
    news = ", ".join(f"{name} {value:.3f}" for name, value in worth.items())
    on_news(f"{teacher}: agrees {agreement:.3f}, {news}")
    for update in range(1, schooling.num_updates + 1):
        learner.step()
        if update % schooling.validate_every == 0:
            name = f"update {update}"
            tried[name] = learner.net()
            worth[name] = ratio_to(theirs, tried[name], validation)
            on_news(f"{teacher}: {name} {worth[name]:.3f}")
    imitated = worth["imitation"]
    kept = min(worth, key=lambda name: worth[name])
    if worth[kept] > 1.0:
        kept, tried, worth = "teacher", {"teacher": order}, {"teacher": 1.0}
    default = [window.play(default_net().net).slowdown for window in validation]
    return Taught(
        replace(tried[kept], name=f"{PREFIX}{teacher}"),
        teacher,
        len(train),
        len(validation),
        agreement,
        bool(first.net.foresight[0] > 0.0),
        imitated,
        worth[kept],
        ratio_to(default, tried[kept], validation),
        kept,
    )


def setting_of(teacher: str, windows: Sequence[Window]) -> MarsNet:
    """Return the order of a heuristic with EASY, or with the default's reservations where these are clearly better."""
    order = classic_net(teacher)
    ahead = replace(order, net=default_net().net._replace(skip=order.net.skip))
    theirs = [window.classics[teacher].slowdown for window in windows]
    return ahead if ratio_to(theirs, ahead, windows) < 1.0 - _CLEARLY else order


def ratio_to(theirs: Sequence[float], net: MarsNet, windows: Sequence[Window]) -> float:
    """Return the geometric mean of the slowdown of a network over others on the same windows."""
    logs = [math.log(window.play(net.net).slowdown / other) for window, other in zip(windows, theirs, strict=True)]
    return math.exp(sum(logs) / len(logs))


def agreement_of(
    net: MarsNet, teacher: MarsNet, windows: Sequence[Window], *, seed: int, rules: Reinforcement
) -> float:
    """Return how often a network would pick what another would, in states that it meets on some windows."""
    learner = MarsLearner(windows, net, seed=seed, rules=rules, num_threads=1)
    batch, _ = learner.play()
    ours, theirs = (
        jnp.argmax(scores(params, batch.x, batch.count), axis=-1)
        for params in (learner.params, init_params(teacher, 0))
    )
    return float(np.mean(np.asarray(ours == theirs)[np.asarray(batch.count) > 0]))
