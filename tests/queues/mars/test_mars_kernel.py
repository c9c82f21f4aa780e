"""The scoring network in the queue: the classics are points of it, and it equals its plain twin."""

from __future__ import annotations

from pathlib import Path

import mars_twin
import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from stretto.catalog import STRATEGIES
from stretto.core.trace import QueueArrays, Trace
from stretto.errors import InvalidInput, UnknownName
from stretto.queues.kernels.expected import SIZE
from stretto.queues.kernels.run import run_queue
from stretto.queues.mars.candidates import candidates_of, default_net, forecast_nets, open_net, plain_net, variant_nets
from stretto.queues.mars.forecaster import shipped
from stretto.queues.mars.kernels import policy as features
from stretto.queues.mars.kernels.forecast import NUM_HEADS, NUM_INPUTS, Forecaster
from stretto.queues.mars.kernels.run import advance, new_state, run_mars, take_over
from stretto.queues.mars.network import CLASSICS, MarsNet, classic_net, load_nets, net_of, save_nets
from stretto.queues.portfolio import kinds_of
from stretto.registry import lookup

PROCS = 8
job = st.tuples(
    st.integers(0, 40),  # gap
    st.integers(1, 300),  # run
    st.integers(1, PROCS),
    st.integers(1, 400),  # estimate beyond or below the run time
    st.integers(0, 2),  # user
)
rows = st.lists(job, min_size=1, max_size=25)


def queue_of(jobs: list[tuple[int, ...]]) -> QueueArrays:
    gap, run, procs, estimate, user = (np.array(column) for column in zip(*jobs))
    return Trace.of(1e5 + np.cumsum(gap), run, procs, estimate, user=user.astype(np.int32)).arrays()


def random_net(
    seed: int,
    num_hidden: int = 4,
    patience_s: float = np.inf,
    trust: float = 0.0,
    reserve: float = 0.0,
    foresight: float = 0.0,
) -> MarsNet:
    rng = np.random.default_rng(seed)
    shapes = {
        "skip": (features.NUM_JOB,),
        "gate": (features.NUM_FEATURES + 1,),
        "hidden": (num_hidden, features.NUM_FEATURES),
        "bias": (num_hidden,),
        "out": (num_hidden,),
    }
    weights = {name: rng.normal(size=shape) for name, shape in shapes.items()}
    single = {"patience": patience_s, "trust": trust, "reserve": reserve, "foresight": foresight}
    return net_of("random", {**weights, **{name: np.array([value]) for name, value in single.items()}})


def random_forecaster(seed: int) -> Forecaster:
    rng = np.random.default_rng(seed)
    shapes = ((NUM_INPUTS, 5), (5,), (5, NUM_HEADS), (NUM_HEADS,))
    return Forecaster(*(rng.normal(size=shape) for shape in shapes))


def play(
    jobs: QueueArrays, net: MarsNet, num_procs: int = PROCS, forecaster: Forecaster | None = None
) -> NDArray[np.float64]:
    start = np.full(len(jobs.submit), -1.0)
    run_mars(jobs, kinds_of(jobs), num_procs, net.net, forecaster or shipped(), start)
    return start


#: A job that outlives its belief while others that started later are not in the list of ends yet.
OUTLIVED = [(0, 1, 1, 1, 0), (0, 8, 3, 8, 0), (7, 1, 1, 12, 0), *[(0, 1, 1, 1, 0)] * 3, (0, 1, 5, 1, 0)]


@settings(max_examples=60, deadline=None)
@example(rows=OUTLIVED, seed=0, patience=50.0, trust=0.5, reserve=0.0, foresight=0.0, slow=1)
@given(
    rows=rows,
    seed=st.integers(0, 1000),
    patience=st.sampled_from([50.0, 400.0, np.inf]),
    trust=st.sampled_from([0.0, 0.5, 1.0]),
    reserve=st.sampled_from([0.0, 0.1, 0.5]),
    foresight=st.sampled_from([0.0, 0.5, 1.0]),
    slow=st.sampled_from([1, 100]),
)
def test_kernel_equals_its_plain_twin(
    rows: list[tuple[int, ...]], seed: int, patience: float, trust: float, reserve: float, foresight: float, slow: int
) -> None:
    if foresight > 0.0:  # more series
        rows = [(gap, run, 1 + procs % 2, estimate, user % 2) for gap, run, procs, estimate, user in rows]
    rows = [(slow * gap, slow * run, procs, slow * estimate, user) for gap, run, procs, estimate, user in rows]
    jobs = queue_of(rows)
    net = random_net(seed, patience_s=patience, trust=trust, reserve=reserve, foresight=foresight)
    forecaster = random_forecaster(seed)
    expected = mars_twin.replay(jobs, kinds_of(jobs), PROCS, net.net, forecaster)
    np.testing.assert_array_equal(play(jobs, net, forecaster=forecaster), expected)


@pytest.mark.parametrize("backfill", [True, False])
@pytest.mark.parametrize("name", [name for name in CLASSICS if name in STRATEGIES])
@settings(max_examples=15, deadline=None)
@given(rows=rows)
def test_classic_orders_are_points_of_the_network(name: str, backfill: bool, rows: list[tuple[int, ...]]) -> None:
    jobs = queue_of([(gap, 7 * run + user, procs, 11 * estimate, user) for gap, run, procs, estimate, user in rows])
    # Equal areas would be told apart by the rounding of their logarithms.
    jobs = jobs._replace(estimate=jobs.estimate + np.arange(len(rows)) / 997)
    ours = play(jobs, classic_net(name, backfill=backfill))
    expected = np.empty(len(jobs.submit))
    run_queue(jobs, PROCS, lookup("strategy", name, STRATEGIES).code, backfill, False, expected)
    if name == "wfp3":  # a logarithm of one more second: orders may differ where waits are short
        assert ours.shape == expected.shape
        assert np.all(ours >= jobs.submit)
    else:
        np.testing.assert_array_equal(ours, expected)


@settings(max_examples=40, deadline=None)
@given(rows=rows, seed=st.integers(0, 100))
def test_machine_is_never_overfull_and_no_job_is_lost(rows: list[tuple[int, ...]], seed: int) -> None:
    jobs = queue_of(rows)
    start = play(jobs, random_net(seed))
    assert np.all(start >= jobs.submit)
    for moment in start:
        running = (start <= moment) & (moment < start + jobs.run)
        assert int(jobs.procs[running].sum()) <= PROCS


@settings(max_examples=30, deadline=None)
@given(rows=rows, seed=st.integers(0, 100), cut=st.integers(0, 25), foresight=st.sampled_from([0.0, 1.0]))
def test_stopping_and_going_on_changes_nothing(
    rows: list[tuple[int, ...]], seed: int, cut: int, foresight: float
) -> None:
    jobs, net = queue_of(rows), random_net(seed, foresight=foresight)
    n, kinds = len(jobs.submit), kinds_of(jobs)
    start = np.full(n, -1.0)
    state = new_state(jobs, kinds, PROCS, net.num_hidden, shipped(), np.ones(n, np.bool_))
    advance(jobs, kinds, PROCS, net.net, state, min(cut, n), start)
    advance(jobs, kinds, PROCS, net.net, state, n + 1, start)
    np.testing.assert_array_equal(start, play(jobs, net))


def test_another_network_takes_over() -> None:
    """Two jobs wait behind one; who comes first is up to the network that is there when it ends."""
    jobs = queue_of([(0, 100, 8, 100, 0), (1, 200, 8, 200, 1), (0, 50, 8, 50, 2), (10, 5, 1, 5, 1)])
    kinds = kinds_of(jobs)
    short, long = classic_net("sjf"), classic_net("ljf")
    start = np.full(4, -1.0)
    state = new_state(jobs, kinds, PROCS, 0, shipped(), np.ones(4, np.bool_))
    advance(jobs, kinds, PROCS, long.net, state, 4, start)
    take_over(jobs, kinds, PROCS, short.net, state, float(jobs.submit[3]), start)
    advance(jobs, kinds, PROCS, short.net, state, 5, start)
    assert start[1] > start[2]


def test_nothing_is_learned_from_a_run_time_before_it_is_known() -> None:
    """A job ends on its machine while its run time is a guess; once it is a fact, that is what is learned."""
    jobs = queue_of([(0, 10, 1, 100, 0), (50, 10, 1, 100, 0), (50, 10, 1, 100, 0)])
    kinds, is_known = kinds_of(jobs), np.array([False, True, True])
    start = np.full(3, -1.0)
    state = new_state(jobs, kinds, PROCS, 0, shipped(), is_known)
    net = classic_net("saf").net
    advance(jobs, kinds, PROCS, net, state, 2, start)
    assert np.isnan(state.records.log_ratio[0])
    assert state.past.weight[kinds[0, -1]] == 0
    is_known[0], jobs.run[0] = True, 50.0
    advance(jobs, kinds, PROCS, net, state, 3, start)
    assert state.records.log_ratio[0] == pytest.approx(np.log(0.5))
    assert state.past.weight[kinds[0, -1]] == 1.95  # the second counts, and the first a little less


def test_foresight_leads_to_the_short_end_of_a_series() -> None:
    """Forty jobs that look alike, the first half long: who has seen other queues soon tries the other end."""
    one_by_one = [(0, 30_000 if k < 20 else 10, 1, 40_000, 0) for k in range(40)]
    jobs = queue_of([*one_by_one, (1, 1, 1, 1, 1)])
    waits = {}
    for foresight in (0.0, 1.0):
        start = play(jobs, classic_net("sjf-believed", foresight=foresight), num_procs=4)
        waits[foresight] = float((start - jobs.submit)[20:40].mean())
    assert waits[1.0] < 0.7 * waits[0.0]


def test_the_listing_of_jobs_does_not_matter() -> None:
    """Jobs that arrive together in another order start at the same times: the network sees each job alone."""
    rng = np.random.default_rng(5)
    rows = [
        (0, int(run), int(procs), int(run) * 2, user)
        for user, (run, procs) in enumerate(zip(rng.permutation(np.arange(50, 90)), rng.integers(1, PROCS, 40)))
    ]
    net = random_net(3)
    by_user = {}
    for order in (np.arange(40), rng.permutation(40)):
        jobs = queue_of([rows[k] for k in order])
        start = play(jobs, net)
        by_user[len(by_user)] = {int(rows[k][4]): float(s) for k, s in zip(order, start)}
    assert by_user[0] == by_user[1]


def test_patience_bounds_the_wait() -> None:
    """A wide job is starved by a stream of narrow ones, unless patience runs out."""
    stream = [(5, 40, 4, 40, 1) for _ in range(200)]
    rows = [(0, 40, 4, 40, 1), (1, 10, 8, 4000, 0), *stream]
    jobs = queue_of(rows)
    starved = play(jobs, classic_net("sjf", backfill=False))[1] - jobs.submit[1]
    patient = play(jobs, classic_net("sjf", backfill=False, patience_s=200.0))[1] - jobs.submit[1]
    assert starved > 1000
    assert patient < 400


def test_networks_survive_a_file(tmp_path: Path) -> None:
    nets = [random_net(1), classic_net("saf")]
    save_nets(tmp_path / "nets.npz", nets, {"trained": "never"})
    found, meta = load_nets(tmp_path / "nets.npz")
    assert meta["trained"] == "never"
    assert [net.name for net in found] == ["random", "saf"]
    for net, other in zip(nets, found):
        for part, array in net.to_arrays().items():
            np.testing.assert_array_equal(array, other.to_arrays()[part])


def test_wrong_weights_are_refused() -> None:
    good = random_net(1).to_arrays()
    with pytest.raises(InvalidInput, match="gate"):
        net_of("bad", {**good, "gate": np.zeros(3)})
    with pytest.raises(InvalidInput, match="not a number"):
        net_of("bad", {**good, "skip": np.full(features.NUM_JOB, np.nan)})
    with pytest.raises(UnknownName, match="safe"):
        classic_net("safe")


def test_beliefs_let_a_job_pass_that_asked_for_too_much() -> None:
    """User 1 always asks for a thousand seconds and runs for ten: once that is known, he passes."""
    past = [(200, 100, 1, 100, 0), (20, 10, 1, 1000, 1)] * 30
    rows = [*past, (200, 100, PROCS - 1, 100, 0), (1, 50, PROCS, 50, 0), (1, 10, 1, 1000, 1)]
    jobs = queue_of(rows)
    head, last = len(rows) - 2, len(rows) - 1
    by_estimates, by_beliefs = (play(jobs, classic_net("fcfs", trust=trust)) for trust in (0.0, 1.0))
    assert by_estimates[last] > by_estimates[head]
    assert by_beliefs[last] == jobs.submit[last]
    assert by_beliefs[head] == by_estimates[head], "he ended in time"


def test_bold_networks_have_names_of_their_own_and_let_few_pass() -> None:
    nets = forecast_nets()
    assert len({net.name for net in nets}) == len(nets)
    short = {net.name: net for net in nets}["saf-forecast-1h"]
    rows = [(1, 50000, PROCS - 1, 50000, 0), (1, 10, PROCS, 10, 0), (1, 8000, 1, 30000, 0), (1, 500, 1, 500, 0)]
    jobs = queue_of(rows)
    few = play(jobs, short)
    all_pass = play(jobs, {net.name: net for net in nets}["saf-forecast"])
    assert all_pass[2] == jobs.submit[2], "it ends before the wide one can start"
    assert few[3] == jobs.submit[3]
    assert few[2] > few[1], "it is too long to pass"


def test_the_default_has_a_variant_and_a_plain_cousin_who_differ_in_whom_they_let_pass_or_in_foresight() -> None:
    default, *others = candidates_of()
    narrow, plain = (
        next(net for net in others if net.name == wanted.name) for wanted in (*variant_nets(), plain_net())
    )
    assert default.name == "default-order"
    assert default.net.foresight[0] == narrow.net.foresight[0] == 1.0
    assert plain.net.foresight[0] == 0.0
    assert narrow.net.reserve[0] > default.net.reserve[0] > plain.net.reserve[0]
    assert narrow.net.gate[-1] < default.net.gate[-1]
    assert plain.net.gate[features.LOG_BELIEVED] == 0.0, "all may pass"
    np.testing.assert_array_equal(narrow.net.skip, default.net.skip)


def test_the_open_order_holds_nobody_back() -> None:
    rows = [(1, 50000, PROCS - 1, 50000, 0), (1, 10, PROCS, 10, 0), (1, 45000, 1, 45000, 0)]
    jobs = queue_of(rows)
    free = next(net for net in candidates_of() if net.name == open_net().name)
    assert play(jobs, free)[2] == jobs.submit[2]
    assert play(jobs, default_net())[2] > jobs.submit[2], "more than twelve hours may not pass"
    assert free.net.reserve[0] == 0.0
    np.testing.assert_array_equal(free.net.skip, default_net().net.skip)


def test_jobs_that_all_outlive_their_beliefs_have_room_to_be_expected_again() -> None:
    """A hundred run at once, longer than believed, while a wide one waits and narrow ones come by."""
    n = 130
    submit = np.r_[np.zeros(100), 1.0, 2.0 + 40.0 * np.arange(29)]
    procs = np.r_[np.ones(100), 110.0, np.ones(29)].astype(np.int32)
    run = np.r_[np.full(101, 1000.0), np.full(29, 5.0)]
    jobs = Trace.of(submit, run, procs, run, user=np.zeros(n, np.int32)).arrays()
    kinds, start = kinds_of(jobs), np.full(n, -1.0)
    state = new_state(jobs, kinds, 110, 0, shipped(), np.ones(n, np.bool_))
    advance(jobs, kinds, 110, classic_net("sjf-believed", trust=1.0).net, state, n, start)
    assert n < state.expected.num[SIZE] <= len(state.expected.entry)
