"""Sentences on replays that are written down by hand: every clause where it belongs."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from stretto.core.answers.policies import policies_answer
from stretto.core.answers.queue import replay_answer, strategies_answer


def some(**values: Any) -> Any:
    return SimpleNamespace(**values)


def replayed(**changes: Any) -> Any:
    wait = some(mean=60.0, p95=120.0, max=3600.0)
    metrics = {"num_jobs": 10, "wait_s": wait, "num_killed": 0, "num_late": 0}
    spec = {"strategy": "fcfs", "backfill": "easy", "estimates": "user"}
    values = {
        "metrics": some(**metrics), "num_unplayed": 0, "is_recorded": False, "departure": None, "calibration": None,
        "promises": None, "trace": some(num_without_limit=0),
        "result": some(spec=spec, pools=(some(num_procs=3), some(num_procs=5)), num_dropped=0),
    }  # fmt: skip
    return some(**{**values, **changes})


def test_replays_are_told_by_their_waits_and_troubles() -> None:
    spread = "5 % of jobs wait more than 2.0 min, the longest 1.0 h"
    start = "Under fcfs with backfill easy on 8 processors, jobs wait 1.0 min on average; "
    assert replay_answer(replayed()) == f"{start}{spread}."
    assert replay_answer(replayed(is_recorded=True)) == f"In the log, jobs waited 1.0 min on average; {spread}."
    assert replay_answer(replayed(num_unplayed=90)).startswith("Interrupted after 10 of 100 jobs: Under fcfs")
    waits = some(recorded=some(mean=30.0), replayed=some(mean=90.0))
    beside = replay_answer(replayed(departure=some(waits=waits)))
    assert beside == (
        "In the log, jobs waited 30 s on average; under fcfs with backfill easy on 8 processors, "
        "they would have waited 1.5 min."
    )
    shown = replay_answer(replayed(departure=some(waits=waits), calibration=1))
    assert "on 8 processors and under the conditions that the log shows, they would have" in shown
    kept = replay_answer(replayed(promises=some(given=1200, broken=0)))
    assert kept.endswith("; none of 1,200 promised latest starts was broken.")
    assert replay_answer(replayed(promises=some(given=3, broken=1))).endswith(
        "; 1 of 3 promised latest starts was broken."
    )
    assert replay_answer(replayed(promises=some(given=3, broken=2))).endswith(
        "; 2 of 3 promised latest starts were broken."
    )
    assert replay_answer(replayed(promises=some(given=0, broken=0))) == f"{start}{spread}."
    metrics = some(num_jobs=10, wait_s=replayed().metrics.wait_s, num_killed=1, num_late=2)
    result = some(**{**vars(replayed().result), "num_dropped": 3})
    assert replay_answer(replayed(metrics=metrics, result=result, trace=some(num_without_limit=4))) == (
        f"{start}{spread}; 1 job killed at the time limit; 2 jobs after their deadline; 3 jobs left out; "
        "4 jobs have no time limit, so their run times are assumed to be known in advance."
    )
    perfect = some(**{**vars(replayed().result), "spec": {"strategy": "f", "backfill": "e", "estimates": "perfect"}})
    assert "assumed" not in replay_answer(replayed(result=perfect, trace=some(num_without_limit=4)))
    assert "assumed" not in replay_answer(replayed(is_recorded=True, trace=some(num_without_limit=4)))


def line(
    strategy: str, mean: float, longest: float = 100.0, backfill: str = "easy", windows: int = 1, **more: float
) -> Any:
    ranges = {"mean_wait_s": some(median=mean), "max_wait_s": some(median=longest)}
    ranges.update({name: some(median=value) for name, value in more.items()})
    return some(
        strategy=strategy, backfill=backfill, num_windows=windows, ranges=ranges, is_recorded=strategy == "recorded"
    )


def ranked(*lines: Any, rank_by: str = "mean_wait_s", without: int = 0) -> str:
    return strategies_answer(some(summary=lambda: list(lines), rank_by=rank_by, num_without_limit=without))


def test_strategies_are_told_by_the_best_the_next_and_fcfs() -> None:
    assert ranked(line("recorded", 60.0)) == "In the log, jobs waited 1.0 min on average."
    assert ranked(line("saf", 60.0)) == "saf: mean wait 1.0 min; longest wait 1.7 min."
    assert ranked(line("saf", 30.0), line("sjf", 60.0), line("fcfs", 120.0)) == (
        "saf is best: mean wait 50 % below sjf, the next, and 75 % below fcfs; longest wait 1.7 min."
    )
    assert ranked(line("saf", 30.0), line("fcfs", 120.0)) == (
        "saf is best: mean wait 75 % below fcfs, the next; longest wait 1.7 min."
    )
    other = line("fcfs", 120.0, backfill="none")
    assert ranked(line("saf", 30.0), line("sjf", 60.0), other) == (
        "saf with backfill easy is best: mean wait 50 % below sjf with backfill easy, the next; longest wait 1.7 min."
    )
    assert ranked(line("saf", 30.0), line("sjf", 30.0), line("fcfs", 60.0)) == (
        "saf and sjf tie: mean wait 30 s; longest wait 1.7 min."
    )
    alone = ranked(line("saf", 30.0, windows=1), line("sjf", 60.0, windows=3))
    assert alone == "saf is best: mean wait 30 s; longest wait 1.7 min."


def test_longest_waits_and_the_log_stand_behind_the_best() -> None:
    start = "saf is best: mean wait 50 % below sjf, the next"
    assert ranked(line("saf", 30.0, 105.0), line("sjf", 60.0, 100.0)) == f"{start}; longest wait 1.8 min."
    assert ranked(line("saf", 30.0, 300.0), line("sjf", 60.0, 120.0)) == (
        f"{start}; longest wait 5.0 min against 2.0 min under sjf."
    )
    assert ranked(line("saf", 9.0, 30.0), line("sjf", 9.0, 60.0), rank_by="max_wait_s") == (
        "saf is best: longest wait 50 % below sjf, the next."
    )
    log = ranked(line("recorded", 20.0), line("saf", 30.0), line("sjf", 60.0), without=2)
    assert log == (
        f"{start}; longest wait 1.7 min; the log itself did better, with 20 s; "
        "2 jobs have no time limit, so their run times are assumed to be known in advance."
    )
    assert "log itself" not in ranked(line("recorded", 30.0), line("saf", 30.0), line("sjf", 60.0))
    busy = [line(name, 9.0, utilization=share) for name, share in (("recorded", 0.9), ("saf", 0.8), ("sjf", 0.4))]
    assert ranked(*busy, rank_by="utilization") == (
        "saf is best: utilization 100 % above sjf, the next; longest wait 1.7 min; "
        "the log itself did better, with 90.0 %."
    )


def test_policies_are_told_by_what_a_change_would_do() -> None:
    def policy(name: str, mean: float, longest: float) -> Any:
        waits = some(mean=mean, p95=120.0, max=longest)
        return some(name=name, waits=waits, figures=lambda: {"mean_wait_s": mean})

    def told(now: tuple[float, float], then: tuple[float, float] | None) -> str:
        best = None if then is None else policy("saf", *then)
        found = some(present=policy("now", *now), best=best, rank_by="mean_wait_s", rows=[1, 2, 3])
        return policies_answer(found, some(total=some(num_earlier=5, num_later=1)))

    assert told((60.0, 3600.0), None) == (
        "With now, 3 jobs wait 1.0 min in the mean, 5 % of them longer than 2.0 min and the longest 1.0 h."
    )
    cut = "saf instead of now would cut the mean wait by 50 %, from 1.0 min to 30 s: "
    cut += "5 jobs would start earlier, 1 job later, and the longest wait"
    assert told((60.0, 3600.0), (30.0, 7200.0)) == f"{cut} rises from 1.0 h to 2.0 h."
    assert told((60.0, 3600.0), (30.0, 1800.0)) == f"{cut} falls from 1.0 h to 30.0 min."
    assert told((60.0, 3600.0), (30.0, 3610.0)) == f"{cut} stays at 1.0 h."
    nothing = "No candidate has a lower mean wait than now; "
    assert told((60.0, 1.0), (60.1, 1.0)) == f"{nothing}saf would leave it as it is."
    assert told((60.0, 1.0), (59.9, 1.0)) == f"{nothing}saf would leave it as it is."
    assert told((60.0, 1.0), (90.0, 1.0)) == f"{nothing}the nearest, saf, would change it from 1.0 min to 1.5 min."
    assert told((0.0, 1.0), (0.0, 1.0)) == f"{nothing}saf would leave it as it is."
