"""Networks that heuristics teach: they agree with their teachers on fresh windows, and end no worse than these."""

from __future__ import annotations

import numpy as np
import pytest

from stretto.core.trace import Trace
from stretto.errors import InvalidInput, UnknownName
from stretto.queues.mars.network import classic_net
from stretto.queues.mars.windows import Window, draw_windows

pytest.importorskip("jax")
pytest.importorskip("optax")
from research.mars.pretrain import (
    Schooling,
    agreement_of,
    by_teacher,
    is_busy,
    pretrain,
    ratio_to,
    school,
    setting_of,
)
from research.mars.reinforcement import Reinforcement

PROCS = 16
RULES = Reinforcement(windows_per_update=4, most_decisions=256, steps=4, discount=0.99)
HOW = Schooling(least_windows=3, most_members=2, num_batches=8, num_updates=4, validate_every=2, rules=RULES)


def windows_of(count: int, seed: int) -> list[Window]:
    rng = np.random.default_rng(seed)
    run = np.round(np.exp(rng.normal(5, 1.7, 1500))) + 1
    procs = rng.integers(1, PROCS + 1, 1500)
    gap = rng.exponential(float((run * procs).mean()) / PROCS, 1500)
    users = rng.integers(0, 9, 1500).astype(np.int32)
    trace = Trace.of(np.cumsum(gap), run, procs, run * rng.uniform(1, 9, 1500), user=users)
    return [window for window in draw_windows(trace, PROCS, count, 120, rng) if is_busy(window)]


TRAIN, FRESH = windows_of(24, 0), windows_of(16, 1)


@pytest.mark.long
@pytest.mark.parametrize("teacher", ["saf", "sjf"])
def test_a_pupil_agrees_with_its_teacher_on_fresh_windows_and_is_no_worse(teacher: str) -> None:
    found = school(teacher, TRAIN, FRESH, seed=3, schooling=HOW)
    assert found.net.name == f"net-{teacher}"
    assert found.agreement > 0.85
    assert found.to_teacher <= 1.0
    theirs = [window.classics[teacher].slowdown for window in FRESH]
    assert ratio_to(theirs, found.net, FRESH) == pytest.approx(found.to_teacher)


def test_a_network_agrees_with_itself_and_not_with_its_opposite() -> None:
    saf = classic_net("saf")
    assert agreement_of(saf, saf, FRESH, seed=0, rules=RULES) == 1.0
    assert agreement_of(saf, classic_net("laf"), FRESH, seed=0, rules=RULES) < 0.3


def test_where_nothing_is_better_the_teacher_stays() -> None:
    """A pupil that has learned nothing, beside a teacher that is best on the window."""
    useless = Schooling(num_batches=1, imitation_steps=1, imitation_rate=0.0, num_updates=0, rules=RULES)
    (name, windows), *_ = sorted(by_teacher(FRESH).items(), key=lambda item: -len(item[1]))
    found = school(name, windows, windows, seed=1, schooling=useless)
    assert found.kept == "teacher"
    assert found.to_teacher <= 1.0
    if not found.has_foresight:
        np.testing.assert_array_equal(found.net.net.skip, classic_net(name).net.skip)


def test_forecasts_are_relied_on_only_where_that_clearly_helps() -> None:
    for name in ("saf", "f4"):
        net = setting_of(name, TRAIN)
        theirs = [window.classics[name].slowdown for window in TRAIN]
        assert (net.net.trust[0] > 0.0) == (net.net.foresight[0] > 0.0)
        assert net.net.trust[0] == 0.0 or ratio_to(theirs, net, TRAIN) < 0.98
        np.testing.assert_array_equal(net.net.skip, classic_net(name).net.skip)


def test_each_window_belongs_to_the_best_heuristic() -> None:
    groups = by_teacher(TRAIN)
    assert sum(len(some) for some in groups.values()) == len(TRAIN)
    for name, some in groups.items():
        for window in some:
            assert window.classics[name].slowdown == min(one.slowdown for one in window.classics.values())


@pytest.mark.long
def test_members_are_those_with_the_most_windows_and_the_same_every_time() -> None:
    quick = Schooling(least_windows=3, most_members=2, num_batches=1, num_updates=1, validate_every=1, rules=RULES)
    one, two = (pretrain(TRAIN, FRESH, seed=2, schooling=quick) for _ in range(2))
    assert [found.teacher for found in one] == [found.teacher for found in two]
    assert len(one) == 2
    counts = {name: len(some) for name, some in by_teacher(TRAIN).items()}
    assert counts[one[0].teacher] >= counts[one[1].teacher] >= 3
    for first, second in zip(one, two, strict=True):
        for part, array in first.net.to_arrays().items():
            np.testing.assert_array_equal(second.net.to_arrays()[part], array)


def test_wrong_settings_are_refused() -> None:
    with pytest.raises(InvalidInput, match="at least 1"):
        Schooling(num_batches=0)
    with pytest.raises(InvalidInput, match="negative"):
        Schooling(num_updates=-1)
    with pytest.raises(InvalidInput, match="enough windows"):
        pretrain(TRAIN, FRESH, seed=0, schooling=Schooling(least_windows=1000))
    with pytest.raises(UnknownName, match="lifo"):
        school("lifo", TRAIN, FRESH, seed=0, schooling=HOW)
