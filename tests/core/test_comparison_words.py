"""Sentences on comparisons with intervals: what is clear, what is not, and who is behind."""

from __future__ import annotations

from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import pytest

from stretto.core.answers.comparison import comparison_answer
from stretto.core.answers.policies import policies_answer
from stretto.core.answers.queue import strategies_answer
from stretto.core.results.paired import PairedDifference
from stretto.errors import InvalidInput

NAN, INF = float("nan"), float("inf")


def some(**values: Any) -> Any:
    return SimpleNamespace(**values)


def difference(effect: float, low: float = NAN, high: float = NAN) -> PairedDifference:
    return PairedDifference("a", "b", "x", True, effect, low, high, 0.95, 5, 1, 1, 3)


@dataclass(frozen=True)
class Graphs:
    """A comparison of policies on graphs, whose summary and paired difference are given."""

    rows: tuple[Any, ...]
    lines: tuple[Any, ...]
    difference: PairedDifference | None

    def summary(self) -> list[Any]:
        return list(self.lines)

    def paired(self, baseline: str) -> list[PairedDifference]:
        assert {row.policy for row in self.rows} == {self.lines[0].policy, baseline}
        if self.difference is None:
            raise InvalidInput("no ratio")
        return [self.difference]


def line(policy: str, ratio: float, runs: int = 4, mean_gap: float = 0.5) -> Any:
    return some(policy=policy, num_results=runs, mean_ratio=ratio, num_best=2, mean_gap=mean_gap)


def graphs(*lines: Any, paired: PairedDifference | None = None, seeds: int = 2, num_graphs: int = 2) -> str:
    names = [f"g{number}" for number in range(num_graphs)]
    rows = tuple(
        some(policy=one.policy, graph=g, seed=s, result=1, reason="")
        for one in lines
        for g in names
        for s in range(seeds)
    )
    return comparison_answer(Graphs(rows, lines, paired))  # type: ignore[arg-type]


def test_the_best_policy_is_told_with_its_lead_and_interval() -> None:
    two = (line("heft", 1.0), line("etf", 1.5), line("peft", 1.6))
    where = "over 2 graphs and 2 seeds"
    lead = "its plans are 25 % shorter than those of etf, the next"
    tail = "shortest in 2 of 4 runs."
    assert graphs(*two, paired=difference(0.75)) == f"heft is best {where}: {lead}; {tail}"
    clear = difference(0.75, 0.5, 0.9)
    assert graphs(*two, paired=clear) == f"heft is best {where}: {lead} (95 %: 10 to 50 %); {tail}"
    open_end = difference(0.75, 0.5, 1.1)
    assert graphs(*two, paired=open_end) == (
        f"heft comes first {where}, but not clearly: {lead} (95 %: -10 to 50 %); {tail}"
    )
    longer = graphs(*two, paired=difference(1.25))
    assert "its plans are 25 % longer than those of etf" in longer
    assert graphs(*two) == f"heft is best {where}: {tail}"
    assert graphs(*two, paired=difference(0.75), seeds=1).startswith("heft is best over 2 graphs: its")
    assert graphs(*two, paired=difference(0.75), num_graphs=1).startswith("heft is best over g0 and 2 seeds: its")


def test_policies_with_fewer_results_are_no_rivals() -> None:
    rows = (line("heft", 1.0), line("etf", 1.0, runs=3), line("peft", 1.2))
    told = graphs(*rows, paired=difference(0.5))
    assert "50 % shorter than those of peft, the next" in told
    assert told.endswith("; etf has fewer results.")
    alone = graphs(line("heft", 1.0), line("etf", 1.0, runs=3), line("peft", 1.2, runs=1))
    assert alone == "heft is best over 2 graphs and 2 seeds: shortest in 2 of 4 runs; etf and peft have fewer results."
    tie = graphs(line("heft", 1.0), line("etf", 1.0 + 1e-12), line("peft", 1.2))
    assert tie == "heft and etf tie over 2 graphs and 2 seeds: shortest in 2 of 4 runs."


def test_one_policy_is_told_by_its_mean_gap() -> None:
    assert graphs(line("heft", 1.0)) == ("heft planned 2 graphs and 2 seeds, 50 % above the lower bounds on average.")
    assert graphs(line("heft", 1.0, mean_gap=INF), seeds=1) == "heft planned 2 graphs."


# Queues -------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Queues:
    """A comparison of strategies on windows, whose summary and paired differences by baseline are given."""

    rows: tuple[Any, ...]
    lines: tuple[Any, ...]
    differences: dict[str, PairedDifference]
    rank_by: str = "mean_wait_s"
    num_without_limit: int = 0

    def summary(self) -> list[Any]:
        return list(self.lines)

    def paired(self, baseline: str, *, figure: str) -> list[PairedDifference]:
        assert figure == self.rank_by
        assert {f"{row.strategy} + {row.backfill}" for row in self.rows} == {"saf + easy", baseline}
        if baseline not in self.differences:
            raise InvalidInput("no ratio")
        return [self.differences[baseline]]


def ranked(
    differences: dict[str, PairedDifference], *names: str, rank_by: str = "mean_wait_s", windows: int = 3
) -> str:
    figures = {name: some(median=30.0 * (number + 1)) for number, name in enumerate(("mean_wait_s", "max_wait_s"))}
    figures["utilization"] = some(median=0.5)
    lines = []
    for number, name in enumerate(names):
        ranges = {**figures, rank_by: some(median=figures[rank_by].median * (1 + number))}
        lines.append(some(strategy=name, backfill="easy", num_windows=windows, ranges=ranges, is_recorded=False))
    rows = tuple(some(strategy=name, backfill="easy") for name in names)
    return strategies_answer(Queues(rows, tuple(lines), differences, rank_by))  # type: ignore[arg-type]


def test_a_lead_over_windows_is_that_of_the_paired_windows() -> None:
    found = {"sjf + easy": difference(0.75, 0.5, 0.9), "fcfs + easy": difference(0.25, 0.1, 0.3)}
    assert ranked(found, "saf", "sjf", "fcfs") == (
        "saf is best over 3 windows: mean wait 25 % below sjf, the next (95 %: 10 to 50 %), and 75 % below fcfs; "
        "longest wait 1.0 min."
    )
    unclear = {**found, "sjf + easy": difference(0.75, 0.5, 1.1)}
    assert ranked(unclear, "saf", "sjf", "fcfs").startswith(
        "saf comes first over 3 windows, but not clearly: mean wait"
    )
    against = {**found, "sjf + easy": difference(1.25, 1.1, 1.5)}  # clearly worse, window by window
    assert ranked(against, "saf", "sjf", "fcfs").startswith(
        "saf comes first over 3 windows, but not clearly: mean wait"
    )
    no_ratio = ranked({}, "saf", "sjf", "fcfs")
    assert no_ratio.startswith("saf is best over 3 windows: mean wait 50 % below sjf, the next, and 67 % below fcfs")
    assert ranked(found, "saf", "sjf", "fcfs", windows=1).startswith("saf is best: mean wait 50 % below sjf, the next")


def test_more_is_better_for_utilization() -> None:
    found = {"sjf + easy": difference(1.25, 1.1, 1.5)}
    assert ranked(found, "saf", "sjf", rank_by="utilization").startswith(
        "saf is best over 3 windows: utilization 25 % above sjf, the next (95 %: 10 to 50 %); longest wait"
    )
    less = {"sjf + easy": difference(0.75, 0.5, 0.9)}
    assert "but not clearly" in ranked(less, "saf", "sjf", rank_by="utilization")


@pytest.mark.parametrize(
    ("then", "told"),
    [
        (59.8, "; saf would leave it as it is."),
        (60.2, "; saf would leave it as it is."),
        (61.0, "; the nearest, saf, would change it from 1.0 min to 1.0 min."),
        (90.0, "; the nearest, saf, would change it from 1.0 min to 1.5 min."),
    ],
)
def test_changes_of_half_a_percent_are_none(then: float, told: str) -> None:
    def policy(name: str, mean: float) -> Any:
        return some(name=name, waits=some(mean=mean, p95=1.0, max=100.0), figures=lambda: {"mean_wait_s": mean})

    found = some(present=policy("now", 60.0), best=policy("saf", then), rank_by="mean_wait_s", rows=[1])
    change = some(total=some(num_earlier=1, num_later=2))
    assert policies_answer(found, change) == f"No candidate has a lower mean wait than now{told}"
    cut = some(present=policy("now", 60.0), best=policy("saf", 45.0), rank_by="mean_wait_s", rows=[1])
    assert policies_answer(cut, change) == (
        "saf instead of now would cut the mean wait by 25 %, from 1.0 min to 45 s: 1 job would start earlier, 2 jobs "
        "later, and the longest wait stays at 1.7 min."
    )
