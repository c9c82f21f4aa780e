"""Figures of the page that compares policies: groups, gainers and losers, the sentence, and the record."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import stretto
from stretto.api.options.policy import PolicyReportOptions
from stretto.api.policy_report import compare_policies, policy_names
from stretto.core.answers.policies import policies_answer as answer
from stretto.core.trace import Trace
from stretto.errors import InvalidInput
from stretto.queues.metrics import Spread
from stretto.queues.replay import replay
from stretto.queues.workloads.lublin import lublin
from stretto.reports.queues.changes import by_group, change_of
from stretto.reports.queues.groups import groupings
from stretto.reports.queues.outcomes import PolicyComparison


@pytest.fixture(scope="module")
def trace() -> Trace:
    made = lublin(600, seed=3, num_procs=64, load=1.0)
    rng = np.random.default_rng(0)
    n = made.num_jobs
    return replace(
        made,
        user=rng.integers(0, 30, n).astype(np.int32),
        partition=rng.integers(0, 3, n).astype(np.int32),
        group=rng.integers(-1, 4, n).astype(np.int32),
        wait_s=np.where(np.arange(n) % 50 == 0, np.nan, rng.integers(0, 9000, n).astype(float)),
        num_procs=np.where(np.arange(n) == 5, 999, made.num_procs).astype(np.int32),
        meta={"partition_names": ["short", "long", "<b>gpu</b>"]},
    )


@pytest.fixture(scope="module")
def found(trace: Trace) -> PolicyComparison:
    return compare_policies(trace, 64, ["fcfs", "sjf", "saf"], PolicyReportOptions())


def test_each_policy_has_the_waits_of_its_replay(trace: Trace, found: PolicyComparison) -> None:
    assert [one.role for one in found.policies] == ["recorded", "present", "candidate", "candidate"]
    assert found.present.name == "fcfs"
    assert 5 not in found.rows
    for one in found.policies[1:]:
        result = replay(trace, 64, strategy=one.name)
        np.testing.assert_array_equal(one.wait_s, result.wait_s)
        assert one.figures()["mean_bounded_slowdown"] == pytest.approx(result.metrics.bounded_slowdown.mean)
    candidates = [one.waits.mean for one in found.policies[2:]]
    assert candidates == sorted(candidates)


def test_the_record_is_that_of_the_log(trace: Trace, found: PolicyComparison) -> None:
    assert found.recorded is not None
    assert trace.wait_s is not None
    kept = trace.wait_s[found.rows]
    assert found.recorded.waits == Spread.of(kept[np.isfinite(kept)])
    assert any("have no recorded wait" in note for note in found.notes)
    assert any("999" in note for note in found.notes), "who is left out is said"


def test_groups_divide_all_jobs(trace: Trace, found: PolicyComparison) -> None:
    made = groupings(trace, found.rows)
    assert [one.key for one in made] == ["partition", "group", "size", "user"]
    for one in made:
        assert np.all(sum(group.chosen.astype(int) for group in one.groups) == 1), one.key
    names = {one.key: [group.name for group in one.groups] for one in made}
    assert set(names["partition"]) == {"short", "long", "<b>gpu</b>"}
    assert "not known" in names["group"]
    assert names["size"][0] == "1 processor"
    assert names["user"][-1] == "all others (20)"


def test_gains_and_losses_add_up(trace: Trace, found: PolicyComparison) -> None:
    assert found.best is not None
    change = change_of(found.present, found.best, found.rows)
    difference = (found.present.wait_s - found.best.wait_s).sum() / 3600
    assert change.total.net_hours == pytest.approx(difference)
    for grouping in groupings(trace, found.rows):
        parts = by_group(change, grouping)
        assert sum(one.net_hours for one in parts) == pytest.approx(difference)
        assert sum(one.num_earlier for one in parts) == change.total.num_earlier
    saved = [one.saved_s for one in change.gainers]
    assert saved == sorted(saved, reverse=True)
    assert len(saved) == 10
    assert saved[0] == pytest.approx(float((found.present.wait_s - found.best.wait_s).max()))
    assert all(one.saved_s < 0 for one in change.losers)


def test_the_sentence_names_winner_figures_and_cost(found: PolicyComparison) -> None:
    assert found.best is not None
    said = answer(found, change_of(found.present, found.best, found.rows))
    assert said.startswith(f"{found.best.name} instead of fcfs would cut the mean wait by ")
    assert "would start earlier" in said
    roles = {"fcfs": "candidate", "saf": "present"}
    turned = replace(found, policies=tuple(replace(one, role=roles.get(one.name, "")) for one in found.policies))
    assert turned.best is not None
    worse = answer(turned, change_of(turned.present, turned.best, found.rows))
    assert worse.startswith("No candidate has a lower mean wait than saf; the nearest, fcfs, would change it from ")
    alone = replace(found, policies=found.policies[:2])
    assert answer(alone, None).startswith("With fcfs, ")


def test_energy_and_carbon_are_figures_to_rank_by(trace: Trace, tmp_path: object) -> None:
    options = PolicyReportOptions(power=100.0, idle_power=40.0, rank_by="energy_kwh")
    found = compare_policies(trace, 64, ["fcfs", "saf"], options)
    first, second = (one.energy_kwh for one in found.policies[1:])
    assert first == pytest.approx(second), "the same work up to the same end on equal processors"
    with pytest.raises(InvalidInput, match="'carbon_kg' is not one of mean_wait_s"):
        compare_policies(trace, 64, ["fcfs", "saf"], PolicyReportOptions(rank_by="carbon_kg"))


def test_options_that_need_each_other_say_so() -> None:
    with pytest.raises(InvalidInput, match="needs --power"):
        PolicyReportOptions(idle_power=1.0)
    with pytest.raises(InvalidInput, match="needs --carbon"):
        PolicyReportOptions(carbon_start="2021-01-01")
    assert policy_names("saf, saf,fcfs") == ["saf", "fcfs"]
    assert policy_names("recorded,saf") == ["saf"]
    with pytest.raises(InvalidInput, match="contains no name"):
        policy_names(" ,")


def test_a_trace_and_runs_do_not_share_a_page(tmp_path: object) -> None:
    queue = "trace:lublin?num_jobs=50&num_procs=8"
    with pytest.raises(InvalidInput, match="a separate page"):
        stretto.report([queue, "latest"], f"{tmp_path}/x.html")
    with pytest.raises(InvalidInput, match="works only with one trace"):
        stretto.report(["latest"], f"{tmp_path}/x.html", strategies=["fcfs"])
    with pytest.raises(InvalidInput, match="has no effect on a trace"):
        stretto.report(queue, f"{tmp_path}/x.html", figures=f"{tmp_path}")
