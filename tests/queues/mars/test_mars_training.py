"""Training of MARS: it improves, resumes exactly, and keeps to the jobs that it may see."""

from __future__ import annotations

import math

import numpy as np
import pytest

from stretto.core.trace import Trace
from stretto.errors import InvalidInput, UnknownName
from stretto.queues.mars import windows as mars_windows
from stretto.queues.mars.cma import Cma
from stretto.queues.mars.network import classic_net
from stretto.queues.mars.trainer import Evolution, MarsTrainer, Objective, to_net, to_vector
from stretto.queues.mars.windows import Figures, Window, draw_windows

PROCS = 16
SMALL = Evolution(population=8, windows_per_generation=3, validate_every=2)


def trace_of(n: int, seed: int = 0) -> Trace:
    rng = np.random.default_rng(seed)
    run = np.round(np.exp(rng.normal(5, 1.7, n))) + 1
    procs = rng.integers(1, PROCS + 1, n)
    gap = rng.exponential(float((run * procs).mean()) / PROCS, n)
    return Trace.of(np.cumsum(gap), run, procs, run * rng.uniform(1, 9, n), user=rng.integers(0, 9, n).astype(np.int32))


def windows_of(count: int, seed: int = 0) -> list[Window]:
    return draw_windows(trace_of(2000), PROCS, count, 150, np.random.default_rng(seed))


def test_cma_finds_the_least_of_a_skewed_bowl() -> None:
    rng = np.random.default_rng(2)
    scale = np.array([1.0, 30.0, 0.1, 5.0])
    target = np.array([3.0, -1.0, 0.5, 2.0])
    cma = Cma(np.zeros(4), 0.5, np.ones(4), 16)
    for _ in range(150):
        samples = cma.ask(rng)
        cma.tell(np.sum((scale * (samples - target)) ** 2, axis=1))
    np.testing.assert_allclose(cma.mean, target, atol=1e-3)


def test_training_improves_on_the_windows_it_keeps() -> None:
    windows = windows_of(12)
    trainer = MarsTrainer(windows[4:], windows[:4], seed=1, evolution=SMALL, starts=[classic_net("laf")])
    first = trainer.step().best_validation
    for _ in range(15):
        row = trainer.step()
    assert row.best_validation == trainer.best_validation < 0.9 * first
    found = [window.play(trainer.net().net) for window in windows[:4]]
    assert trainer.objective.value(windows[:4], found) == pytest.approx(trainer.best_validation)


def test_starts_that_count_from_another_moment_are_not_measured() -> None:
    """Replays put the first job at zero: against the times of the log itself, every wait would look shorter."""
    jobs = trace_of(50).arrays()
    assert mars_windows.figures(jobs, jobs.submit + 5.0).max_wait_s == pytest.approx(5.0)
    with pytest.raises(InvalidInput, match="before it is submitted"):
        mars_windows.figures(jobs, jobs.submit + 5.0 - jobs.submit[0] - 6.0)


@pytest.mark.parametrize("hidden", [0, 4])
def test_a_resumed_training_is_the_same_training(hidden: int) -> None:
    windows = windows_of(8)
    evolution = Evolution(population=8, windows_per_generation=3, validate_every=2, hidden=hidden)

    def trainer() -> MarsTrainer:
        return MarsTrainer(windows[2:], windows[:2], seed=3, evolution=evolution)

    one, two = trainer(), trainer()
    for _ in range(3):
        one.step()
    two.restore(*one.state())
    for _ in range(4):
        np.testing.assert_equal(one.step(), two.step())
    for part, array in one.net().to_arrays().items():
        np.testing.assert_array_equal(array, two.net().to_arrays()[part])


def test_an_untrained_hidden_layer_changes_nothing() -> None:
    (window,) = windows_of(1)
    plain = classic_net("saf")
    assert window.play(plain.net) == window.play(plain.with_hidden(8, seed=1).net)


def test_a_network_survives_being_a_vector() -> None:
    net = classic_net("wfp3", patience_s=5000.0).with_hidden(3, seed=2)
    again = to_net(to_vector(net, patience_s=1.0), "again", net)
    for part, array in net.to_arrays().items():
        np.testing.assert_allclose(again.to_arrays()[part], array, rtol=1e-12)


def test_windows_hold_only_usable_jobs() -> None:
    trace = trace_of(1000)
    usable = np.zeros(1000, np.bool_)
    usable[100:400] = usable[600:900] = True
    allowed = set(trace.run_s[usable] * 1e6 + trace.num_procs[usable])
    for pieced in (0.0, 1.0):
        for window in draw_windows(trace, PROCS, 10, 150, np.random.default_rng(0), usable=usable, pieced=pieced):
            assert set(window.jobs.run * 1e6 + window.jobs.procs) <= allowed
            assert len(window.jobs.submit) == 150
            assert np.all(np.diff(window.jobs.submit) >= 0)


def figures(slowdown: float, wait: float) -> Figures:
    return Figures({"bounded-slowdown": slowdown, "mars-v1": 2 * slowdown, "tail": slowdown**2}, wait, 100.0)


def test_starvation_is_not_worth_a_lower_mean() -> None:
    (window,) = windows_of(1)
    window.classics.clear()
    window.classics.update({"f4": figures(10.0, 1000.0), "saf": figures(8.0, 3000.0)})
    objective = Objective(wait_of="f4")
    assert objective.value([window], [figures(8.0, 900.0)]) == pytest.approx(1.0)
    assert objective.value([window], [figures(7.0, 2000.0)]) > objective.value([window], [figures(10.0, 900.0)])
    assert Objective(wait_of="f4", money=1.0).value([window], [figures(8.0, 900.0)]) == pytest.approx(2.0)
    assert Objective(variant="mars-v1", average="geometric").value([window], [figures(4.0, 0.0)]) == pytest.approx(0.5)
    assert Objective(variant="tail", average="geometric").value([window], [figures(4.0, 0.0)]) == pytest.approx(0.25)


def test_wrong_settings_are_refused() -> None:
    with pytest.raises(UnknownName, match="f9"):
        Objective(wait_of="f9")
    with pytest.raises(UnknownName, match="did you mean mars-v1"):
        Objective(variant="mars-v2")
    with pytest.raises(UnknownName, match="median"):
        Objective(average="median")
    with pytest.raises(InvalidInput, match="money"):
        Objective(money=math.inf)
    with pytest.raises(InvalidInput, match="windows"):
        MarsTrainer([], [], seed=0)
    with pytest.raises(InvalidInput, match="no jobs"):
        draw_windows(trace_of(10), PROCS, 1, 5, np.random.default_rng(0), usable=np.zeros(10, np.bool_))
