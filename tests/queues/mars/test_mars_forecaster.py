"""The forecaster: what it sees equals a plain twin, and files say what is wrong with them."""

from __future__ import annotations

from pathlib import Path

import mars_twin
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stretto.core.trace import QueueArrays, Trace
from stretto.errors import InvalidInput
from stretto.files import checkpoint
from stretto.queues.mars.candidates import default_net
from stretto.queues.mars.forecaster import blend, load_forecaster, save_forecaster, shipped
from stretto.queues.mars.kernels.forecast import NUM_HEADS, NUM_INPUTS, Forecaster, collect
from stretto.queues.mars.kernels.run import run_mars
from stretto.queues.mars.network import classic_net, save_nets
from stretto.queues.mars.replay import mars_replay
from stretto.queues.portfolio import kinds_of

PROCS = 4
job = st.tuples(
    st.integers(0, 90),  # gap
    st.integers(1, 900),  # run
    st.integers(1, 2),
    st.sampled_from([60, 600, 700, 3600]),  # estimate
    st.integers(0, 1),  # user
)


def queue_of(jobs: list[tuple[int, ...]]) -> QueueArrays:
    gap, run, procs, estimate, user = (np.array(column) for column in zip(*jobs))
    return Trace.of(np.cumsum(gap), run, procs, estimate, user=user.astype(np.int32)).arrays()


def made_up(seed: int, num_hidden: int = 3) -> Forecaster:
    rng = np.random.default_rng(seed)
    shapes = ((NUM_INPUTS, num_hidden), (num_hidden,), (num_hidden, NUM_HEADS), (NUM_HEADS,))
    return Forecaster(*(rng.normal(size=shape) for shape in shapes))


@settings(max_examples=60, deadline=None)
@given(rows=st.lists(job, min_size=1, max_size=25))
def test_what_is_collected_is_what_a_plain_twin_sees(rows: list[tuple[int, ...]]) -> None:
    jobs = queue_of(rows)
    kinds, n = kinds_of(jobs), len(rows)
    start = np.empty(n)
    run_mars(jobs, kinds, PROCS, classic_net("saf").net, shipped(), start)
    x, of = np.zeros((n, NUM_INPUTS)), np.zeros(n, np.int64)
    every, none = np.ones(n, np.bool_), np.zeros(n, np.bool_)
    assert collect(jobs, kinds, start, every, none, x, of) == n
    np.testing.assert_array_equal(of, np.arange(n))
    end = start + jobs.run
    for k in range(n):
        now = float(jobs.submit[k])
        ended = [(float(end[j]), int(j)) for j in np.lexsort((np.arange(n), end)) if end[j] <= now]
        begun = np.where((start < now) & (np.arange(n) < k), start, -1.0)
        expected, _ = mars_twin.inputs(mars_twin.Ended(jobs, ended), kinds, k, k + 1, now, begun)
        np.testing.assert_allclose(x[k], expected, atol=1e-6)  # a spread is a difference of sums
    assert collect(jobs, kinds, start, none, every, x, of) == n
    order = np.argsort(start, kind="stable")
    np.testing.assert_array_equal(of, order)
    for row, k in enumerate(order.tolist()):
        now = float(start[k])
        ended = [(float(end[j]), int(j)) for j in np.lexsort((np.arange(n), end)) if end[j] <= now]
        begun = np.full(n, -1.0)
        begun[order[:row]] = start[order[:row]]
        arrived = int(np.sum(jobs.submit <= now))
        expected, _ = mars_twin.inputs(mars_twin.Ended(jobs, ended), kinds, k, arrived, now, begun)
        np.testing.assert_allclose(x[row], expected, atol=1e-6)  # a spread is a difference of sums


def test_a_blend_says_the_mean() -> None:
    """As the kernels hear it: an order by the blend lies between; here, by the sums that make it up."""
    parts = [made_up(1), made_up(2)]
    mixed = blend(parts)
    rng = np.random.default_rng(0)
    x = rng.normal(size=NUM_INPUTS).tolist()

    def plain(one: Forecaster) -> np.ndarray:
        z = np.array(x) @ one.first + one.bias
        return np.asarray(np.maximum(z, 0.1 * z) @ one.out + one.out_bias)

    np.testing.assert_allclose(plain(mixed), np.mean([plain(one) for one in parts], axis=0))
    with pytest.raises(InvalidInput, match="nothing to blend"):
        blend([])


def test_a_file_gives_back_what_was_saved(tmp_path: Path) -> None:
    path = tmp_path / "forecaster.npz"
    one = made_up(3)
    save_forecaster(path, one, {"logs": ["a"]})
    again, meta = load_forecaster(path)
    assert meta["logs"] == ["a"]
    for ours, theirs in zip(one, again, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-6)


def test_files_that_hold_something_else_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "bad.npz"
    save_nets(path, [default_net()], {})
    with pytest.raises(InvalidInput, match="does not hold a forecaster"):
        load_forecaster(path)
    good = made_up(4)._asdict()
    for name, array, message in (
        ("bias", np.zeros(7), "expected"),
        ("out", np.full((3, NUM_HEADS), np.nan), "not finite"),
    ):
        checkpoint.save(path, {**good, name: array}, {"kind": "mars-forecaster"})
        with pytest.raises(InvalidInput, match=message):
            load_forecaster(path)
    checkpoint.save(path, {name: array for name, array in good.items() if name != "first"}, {"kind": "mars-forecaster"})
    with pytest.raises(InvalidInput, match="has no first"):
        load_forecaster(path)


def test_another_forecaster_makes_another_replay() -> None:
    """Two users submit alike and run differently; one forecaster takes long jobs for short ones."""
    rng = np.random.default_rng(1)
    rows = [(int(rng.integers(0, 40)), int(run), 2, 3600, int(run > 500)) for run in rng.choice([20, 900], 60)]
    gap, run, procs, estimate, user = (np.array(column) for column in zip(*rows))
    trace = Trace.of(np.cumsum(gap), run, procs, estimate, user=user.astype(np.int32))
    contrary = shipped()._replace(out=-shipped().out)
    ours, theirs = (mars_replay(trace, PROCS, forecaster=one).start_s for one in (shipped(), contrary))
    assert not np.array_equal(ours, theirs)
    arrays = ours + trace.run_s - trace.submit_s
    assert np.mean(arrays / trace.run_s) < np.mean((theirs + trace.run_s - trace.submit_s) / trace.run_s)


def test_the_shipped_one_did_not_see_what_is_held_out() -> None:
    from stretto.queues.mars.forecaster import SHIPPED

    _, meta = load_forecaster(SHIPPED)
    assert not [log for log in meta["logs"] if log.startswith(("CTC", "OSC", "SDSC-BLUE", "Theta"))]
    assert meta["share"] == pytest.approx(0.6)
