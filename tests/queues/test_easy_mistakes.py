"""Small traces on which textbook EASY differs from each mistake that simulators are known to make.

Every expected start is derived by hand in the comments. P is the number of processors; a job is written
``name(submit, run, procs, estimate)``. The mistakes, by the simulators that were found to make them:

- RLScheduler: a sticky head, a strict "<", no extra, a reservation that is computed once;
- AccaSim: a reservation that never moves earlier, and that stays with the first job that ever had it; backfilled jobs
  that take the head's processors;
- CQSim: true run times of waiting jobs; options that are zero are replaced by a default;
- schedgym: true ends of running jobs; a short job passes a head that does not fit, without backfilling;
- Alea: times rounded to whole seconds; processors that must come from whole free nodes;
- pybatsim: processors that must be neighbours;
- pyss and IRMaSim: textbook EASY in another tie order.
"""

from __future__ import annotations

import pytest

from stretto.core.pool import Pool
from stretto.core.trace import Trace
from stretto.queues.replay import replay

Job = tuple[float, float, int, float]


def starts(jobs: list[Job], procs: int, backfill: str = "easy") -> list[float]:
    submit, run, width, estimate = zip(*jobs)
    trace = Trace.of(submit, run, width, estimate)
    return replay(trace, procs, backfill=backfill).start_s.tolist()


def test_a_job_that_ends_exactly_at_the_shadow_time_is_backfilled() -> None:
    # P=4. A(0,10,3,10) runs at 0. B(1,5,4,5) needs all: shadow 10, extra 0.
    # C(2,8,1,8) would end at 10, not after the shadow: it starts at 2. A strict "<" leaves it until 15.
    assert starts([(0, 10, 3, 10), (1, 5, 4, 5), (2, 8, 1, 8)], 4) == [0, 10, 2]


def test_extra_processors_are_used() -> None:
    # P=4. A(0,10,3,10) at 0. B(1,5,3,5): shadow 10, then 4 are free, extra 1.
    # C(2,100,1,100) ends long after the shadow but takes only the extra: it starts at 2.
    # Without the extra rule it waits: at 10 B starts (1 free), and C starts then.
    assert starts([(0, 10, 3, 10), (1, 5, 3, 5), (2, 100, 1, 100)], 4) == [0, 10, 2]


def test_extra_processors_are_used_up() -> None:
    # P=5. A(0,10,3,10) at 0, 2 free. B(1,5,4,5): shadow 10, extra 5-4=1.
    # C(2,100,1,100) takes the extra at 2. D(2,100,1,100) would find none left: B must start at 10.
    # B ends at 15; but at 10, after B, 0 are free (1 for C): D starts at 15.
    jobs: list[Job] = [(0, 10, 3, 10), (1, 5, 4, 5), (2, 100, 1, 100), (2, 100, 1, 100)]
    assert starts(jobs, 5) == [0, 10, 2, 15]


def test_a_short_job_does_not_use_up_the_extra() -> None:
    # As above, but C(2,8,1,8) ends at the shadow: D still has the extra and starts at 2 with it.
    jobs: list[Job] = [(0, 10, 3, 10), (1, 5, 4, 5), (2, 8, 1, 8), (2, 100, 1, 100)]
    assert starts(jobs, 5) == [0, 10, 2, 2]


def test_all_jobs_that_end_at_the_shadow_time_count_for_the_extra() -> None:
    # P=4. A(0,10,2,10) and B(0,10,1,10) end together. C(1,5,3,5) needs 3, 1 is free: shadow 10, after A alone 3.
    # With B there are 4, so the extra is 1 and D(2,100,1,100) starts at 2. Stopping at A gives extra 0 and D at 10.
    assert starts([(0, 10, 2, 10), (0, 10, 1, 10), (1, 5, 3, 5), (2, 100, 1, 100)], 4) == [0, 0, 10, 2]


def test_the_reservation_moves_earlier_when_a_job_ends_early() -> None:
    # P=4. A(0,3,4,100) says 100 and ends at 3. B(1,5,4,5) had a shadow of 100, and starts at 3 all the same.
    # Keeping the first reservation would start it at 100.
    assert starts([(0, 3, 4, 100), (1, 5, 4, 5)], 4) == [0, 3]


def test_the_new_reservation_bounds_backfilling() -> None:
    # P=4. A(0,3,2,100) says 100, X(0,20,1,20) runs beside it; B(1,5,4,5): shadow 100.
    # At 3 A has ended: 3 free, shadow 20 (when X ends). C(4,50,1,50) would have fitted before the old shadow 100,
    # but ends at 54 > 20 with extra 0: it waits. B at 20, C at 25.
    assert starts([(0, 3, 2, 100), (0, 20, 1, 20), (1, 5, 4, 5), (4, 50, 1, 50)], 4) == [0, 0, 20, 25]


def test_the_head_may_change_at_every_event() -> None:
    # P=2, shortest first. A(0,10,2,10). B(1,9,2,9) is the head until C(2,1,2,1) comes.
    # The choice is made anew: C runs at 10, B at 11. A sticky head would run B at 10.
    submit, run, width, estimate = zip((0, 10, 2, 10), (1, 9, 2, 9), (2, 1, 2, 1))
    trace = Trace.of(submit, run, width, estimate)
    assert replay(trace, 2, strategy="sjf").start_s.tolist() == [0, 11, 10]


def test_processors_need_not_be_neighbours() -> None:
    # P=4. Four jobs of one processor end at 10, 1, 10, 1. B(0,5,2,5) takes the second and fourth at 1.
    # Contiguous ranges would make it wait until 10.
    jobs: list[Job] = [(0, 10, 1, 10), (0, 1, 1, 1), (0, 10, 1, 10), (0, 1, 1, 1), (0, 5, 2, 5)]
    assert starts(jobs, 4) == [0, 0, 0, 0, 1]


def test_estimates_and_not_run_times_decide_about_backfilling() -> None:
    # P=4. A(0,10,3,10) at 0; B(1,5,4,5): shadow 10. C(2,1,1,50) really ends at 3, but says 52 > 10: it waits.
    # B starts at 10; C at 15. A clairvoyant scheduler starts C at 2.
    assert starts([(0, 10, 3, 10), (1, 5, 4, 5), (2, 1, 1, 50)], 4) == [0, 10, 15]


def test_estimates_and_not_run_times_make_the_shadow() -> None:
    # P=4. A(0,4,3,10) says 10 and ends at 4; B(1,5,4,5): shadow 10. C(2,8,1,8) ends at 10: it is backfilled
    # at 2, and delays B to 10, although B could have started at 4. With true ends, the shadow is 4 and B starts then.
    assert starts([(0, 4, 3, 10), (1, 5, 4, 5), (2, 8, 1, 8)], 4) == [0, 10, 2]


@pytest.mark.parametrize("backfill", ["none", "easy", "easy-sjbf", "conservative", "slack"])
def test_nothing_before_a_job_starts_depends_on_its_run_time(backfill: str) -> None:
    # C waits at first, with an estimate of 30 and a run of 3 or of 30. Until it ends, all starts are the same.
    def replayed(run: float) -> list[float]:
        jobs: list[Job] = [(0, 10, 3, 10), (1, 5, 4, 5), (2, run, 2, 30), (3, 9, 1, 9), (4, 2, 1, 2)]
        return starts(jobs, 4, backfill)

    short, long = replayed(3), replayed(30)
    first_end = short[2] + 3
    assert [min(t, first_end) for t in short] == [min(t, first_end) for t in long]


def test_sorted_backfilling_takes_the_shorter_job() -> None:
    # P=4. A(0,10,3,10); B(1,5,4,5): shadow 10, 1 free. C(2,8,1,8) and D(2,3,1,3) both fit, one at a time.
    # At 2 EASY takes C (until 10), then D at 15 after B.
    # By estimate D runs at 2; at 5, C would end at 13 > 10, so that it starts at 15.
    jobs: list[Job] = [(0, 10, 3, 10), (1, 5, 4, 5), (2, 8, 1, 8), (2, 3, 1, 3)]
    assert starts(jobs, 4) == [0, 10, 2, 15]
    assert starts(jobs, 4, "easy-sjbf") == [0, 10, 15, 2]


def test_conservative_protects_jobs_behind_the_head() -> None:
    # P=4. A(0,10,3,10); B(1,5,3,5) is planned from 10 to 15, with one processor left beside it; C(2,6,4,6) at 15.
    # D(3,20,1,20) takes only B's extra processor: EASY starts it at 3, and C must wait for its end at 23.
    # Conservative plans D after C, at 21, where E(4,30,3,30) has the other three processors.
    # With EASY, E comes after C: at 29.
    jobs: list[Job] = [(0, 10, 3, 10), (1, 5, 3, 5), (2, 6, 4, 6), (3, 20, 1, 20), (4, 30, 3, 30)]
    assert starts(jobs, 4) == [0, 10, 23, 3, 29]
    assert starts(jobs, 4, "conservative") == [0, 10, 15, 21, 21]


def test_slack_lets_the_head_be_delayed_by_a_share_of_its_estimate() -> None:
    # P=4. A(0,10,3,10); B(1,10,4,10): shadow 10, and with a slack of 0.5 it may be started by 15.
    # C(2,12,1,12) ends at 14: too late for EASY, in time with slack. B starts at 14.
    jobs: list[Job] = [(0, 10, 3, 10), (1, 10, 4, 10), (2, 12, 1, 12)]
    assert starts(jobs, 4) == [0, 10, 20]
    assert starts(jobs, 4, "slack") == [0, 14, 2]


def test_ties_at_one_moment_change_the_schedule() -> None:
    # P=2. A(0,5,1,9), B(0,5,1,9) end together at 5; H(1,4,2,4) and S(2,4,1,4) wait.
    # batch: both ends, then one pass: H starts at 5, S at 9.
    # one event: A has ended, B not yet. H does not fit; its shadow is B's expected end, 9, and S ends by it: S at 5.
    # Then B ends, but S holds a processor until 9: H at 9.
    trace = Trace.of([0, 0, 1, 2], [5, 5, 4, 4], [1, 1, 2, 1], [9, 9, 4, 4])
    assert replay(trace, 2).start_s.tolist() == [0, 0, 5, 9]
    assert replay(trace, 2, tie="one-event").start_s.tolist() == [0, 0, 9, 5]


def test_a_due_job_whose_end_has_not_had_its_turn_is_expected_in_a_second() -> None:
    # P=3. A(0,5,1,5) and B(0,5,1,5) are due at 5; H(1,4,3,4) waits, and S(5,1,1,1) arrives at 5: the first event.
    # One event: nothing has ended, one processor is free. A and B are expected at 6: the shadow, and S ends by it.
    # S runs from 5 to 6, and H starts at 6. Batch: both have ended, H starts at 5 and S after it, at 9.
    trace = Trace.of([0, 0, 1, 5], [5, 5, 4, 1], [1, 1, 3, 1], [5, 5, 4, 1])
    assert replay(trace, 3).start_s.tolist() == [0, 0, 5, 9]
    assert replay(trace, 3, tie="one-event").start_s.tolist() == [0, 0, 6, 5]


def test_the_reservation_is_not_bound_to_a_job_that_is_no_longer_the_head() -> None:
    # P=4, shortest first. A(0,10,3,10) runs; B(1,9,4,9) is the head with a shadow of 10. C(2,3,2,3) is shorter and
    # comes before B: the head is C now, it needs two, shadow 10, and leaves an extra of 2. D(3,20,1,20) takes one of
    # these at 3. Were the reservation still B's, all four would be kept for 10, and D would wait.
    trace = Trace.of([0, 1, 2, 3], [10, 9, 3, 20], [3, 4, 2, 1])
    assert replay(trace, 4, strategy="sjf").start_s.tolist() == [0, 23, 10, 3]


def test_backfilled_jobs_do_not_take_the_processors_of_the_head() -> None:
    # P=4. A(0,10,2,10) runs, H(1,5,4,5) needs all: shadow 10, extra 0. Each of L(2,9,1,9) fits now, on free
    # processors that H will need at 10, and would end at 11: none starts before H.
    assert starts([(0, 10, 2, 10), (1, 5, 4, 5), (2, 9, 1, 9), (2, 9, 1, 9)], 4) == [0, 10, 15, 15]


def test_without_backfilling_the_head_blocks_the_queue() -> None:
    # P=4, shortest first. A(0,10,3,10) runs. B(1,2,4,2) is the shortest and does not fit; C(2,5,1,5) would.
    # First fit would start C at 2. Without backfilling it waits for B: B at 10, C at 12.
    submit, run, width, estimate = zip((0, 10, 3, 10), (1, 2, 4, 2), (2, 5, 1, 5))
    trace = Trace.of(submit, run, width, estimate)
    assert replay(trace, 4, strategy="sjf", backfill="none").start_s.tolist() == [0, 10, 12]
    assert replay(trace, 4, strategy="sjf").start_s.tolist() == [0, 10, 2]


def test_zero_means_zero() -> None:
    # A slack of zero is EASY itself, not the default slack of one half (which delays B to 14).
    trace = Trace.of([0, 1, 2], [10, 10, 12], [3, 4, 1])
    assert replay(trace, 4, backfill="slack", slack=0.0).start_s.tolist() == [0, 10, 20]
    assert replay(trace, 4, backfill="slack").start_s.tolist() == [0, 14, 2]


def test_times_are_not_rounded() -> None:
    # P=2. A(0,10.4,1,10.4) runs; B(1,5,2,5): shadow 10.4. C(2.1,8.25,1,8.25) ends before it and starts at 2.1; one
    # that ends at 10.5 does not. In whole seconds A ends at 10 or 11, and one of the two goes the other way.
    assert starts([(0, 10.4, 1, 10.4), (1, 5, 2, 5), (2.1, 8.25, 1, 8.25)], 2) == [0, 10.4, 2.1]
    assert starts([(0, 10.4, 1, 10.4), (1, 5, 2, 5), (2.1, 8.4, 1, 8.4)], 2) == [0, 10.4, 15.4]


def test_processors_may_come_from_several_nodes() -> None:
    # Two nodes of four. A and B take three each; C takes one of either node at once, not after a whole node is free.
    trace = Trace.of([0, 0, 1], [10, 10, 5], [3, 3, 2])
    assert replay(trace, (Pool("nodes", 2, procs_per_node=4),)).start_s.tolist() == [0, 0, 1]
