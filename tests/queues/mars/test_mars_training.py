"""Training of MARS: it improves, resumes exactly, and keeps to the jobs that it may see."""

from __future__ import annotations

import math

import numpy as np
import pytest
from mars_cases import PROCS, crowded, random_net

from stretto.core.trace import Trace
from stretto.errors import InvalidInput
from stretto.learning.cma import Cma
from stretto.learning.trainer import TrainingSpec
from stretto.queues.mars.candidates import network_candidate, smith_net
from stretto.queues.mars.kernels import score
from stretto.queues.mars.network import MarsNet, linear_net
from stretto.queues.mars.run import OPPONENTS, MarsRun
from stretto.queues.mars.trainer import MarsTrainer, to_net, to_vector
from stretto.queues.mars.windows import Window, draw_windows, figures_of, make_window, num_jobs_of, starts_of
from stretto.queues.promises.slack import Slack

SLACK = Slack(3600.0, 4.0)


def windows_of(count: int) -> list[Window]:
    return draw_windows(crowded(2000, 1, load=1.0), PROCS, count, 150, np.random.default_rng(0))


def backwards() -> MarsNet:
    """Return a bad order to begin with: long and wide jobs first."""
    return linear_net("backwards", {score.MEAN: 1.0, score.WIDTH: 1.0})


def trainer_of(windows: list[Window], start: MarsNet, seed: int = 3) -> MarsTrainer:
    return MarsTrainer(
        windows[2:],
        windows[:2],
        start,
        seed=seed,
        slack=SLACK,
        population=8,
        windows_per_generation=3,
        validate_every=2,
        sigma=1.5,
        num_threads=1,
    )


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
    windows = windows_of(8)
    trainer = trainer_of(windows, backwards())
    rows = [trainer.step() for _ in range(6)]
    assert [row.number for row in rows] == list(range(1, 7))
    assert rows[-1].best_validation == trainer.best_validation < -0.05
    assert rows[0].num_jobs == 8 * num_jobs_of(windows[:3])
    gains = []
    for window in windows[:2]:
        found, base = (window.play(net, SLACK) for net in (trainer.net("x"), backwards()))
        gains.append(math.log(found.cost / base.cost))
    assert np.mean(gains) < -0.05


def test_the_same_seed_is_the_same_network_and_another_is_not() -> None:
    windows, found = windows_of(6), []
    for seed in (3, 3, 4):
        trainer = trainer_of(windows, smith_net(), seed)
        found.append([trainer.step().train for _ in range(3)])
    assert found[0] == found[1] != found[2]


def test_a_resumed_training_is_the_same_training() -> None:
    windows = windows_of(6)
    one, two = (trainer_of(windows, backwards()) for _ in range(2))
    for _ in range(3):
        one.step()
    two.restore(*one.state())
    for _ in range(3):
        np.testing.assert_equal(one.step(), two.step())
    for part, array in one.net("x").to_arrays().items():
        np.testing.assert_array_equal(array, two.net("x").to_arrays()[part])


def test_a_network_survives_being_a_vector() -> None:
    net = random_net(0)
    again = to_net(to_vector(net), "again")
    for part, array in net.to_arrays().items():
        np.testing.assert_allclose(again.to_arrays()[part], array, rtol=1e-12)
    extreme = to_net(np.full(len(to_vector(net)), 1e6), "extreme")
    assert extreme.net.reserve[0] == 20.0


def test_windows_are_stretches_of_the_log_in_which_somebody_waits() -> None:
    trace = crowded(1000, 2, load=0.7)
    for window in draw_windows(trace, PROCS, 8, 120, np.random.default_rng(0)):
        gaps = np.diff(window.trace.submit_s)
        first = next(k for k in range(881) if np.array_equal(np.diff(trace.submit_s[k : k + 120]), gaps))
        assert np.array_equal(window.trace.run_s, trace.run_s[first : first + 120])
        assert window.policy.longest_s > 0
        assert window.policy == make_window(window.trace, PROCS).policy
    idle = Trace.of(1e6 * np.arange(50.0), np.ones(50), np.ones(50))
    assert draw_windows(idle, PROCS, 1, 20, np.random.default_rng(0))[0].policy.longest_s == 0
    with pytest.raises(InvalidInput, match="no jobs"):
        draw_windows(Trace.of([0.0], [1.0], [1]), PROCS, 1, 5, np.random.default_rng(0))


def test_figures_of_a_window_are_those_of_its_starts() -> None:
    window = windows_of(1)[0]
    start = starts_of(window.trace, PROCS, network_candidate(smith_net()), SLACK)
    jobs = window.trace.arrays()
    assert window.play(smith_net(), SLACK) == figures_of(jobs, start)
    assert figures_of(jobs, jobs.submit + 5.0).longest_s == 5.0


def test_training_without_windows_is_refused() -> None:
    with pytest.raises(InvalidInput, match="windows"):
        MarsTrainer([], [], smith_net(), seed=0, slack=SLACK)


def test_a_run_is_judged_on_jobs_that_it_has_not_seen_with_and_without_what_was_trained() -> None:
    trace = crowded(300, 4)
    run = MarsRun((trace, PROCS), TrainingSpec(episodes=1, seed=1, num_threads=1), start=smith_net())
    last = trace.submit_s[int(0.6 * 300) - 1]
    for window in (*run.trainer._train, *run.trainer._validation):
        assert window.trace.submit_s[-1] - window.trace.submit_s[0] <= last
        assert window.trace.num_jobs == 90
    assert run.num_held_out == 120
    row = run.step()
    assert (run.is_done, row.episode, row.jobs_per_s > 0) == (True, 1, True)
    found = run.judge()
    assert set(found.others) == set(OPPONENTS)
    ratio, low, high = (found.uses[f"with / without{part}"] for part in ("", ", low", ", high"))
    assert low <= ratio <= high
    assert found.uses["mars"] > 1
    if np.array_equal(run.net.net.weight, smith_net().net.weight):
        assert found.trained == found.untrained
