"""``stretto plan WORKFLOW --pools``: which nodes are rented when, and at what cost."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from .conftest import Run

POOLS = "own:1,cloud:0-8@3600"  # a dollar per second: nothing is rented without need
OFFERS = """
[[pool]]
name = "own"
num_nodes = 1

[[pool]]
name = "cloud"
num_nodes = 4
min_nodes = 0
price_usd_per_hour = 3.6
provision = "90s"
minimum = "60s"
[pool.spot]
price_usd_per_hour = 1.2
hazard_per_hour = 0.05
"""


@pytest.fixture
def chain(tmp_path: Path) -> Path:
    """Write 23 tasks of a minute, one after the other."""
    graph = {
        "format": "stretto-graph",
        "version": 1,
        "name": "chain",
        "work_s": [60.0] * 23,
        "object_task": list(range(22)),
        "object_size": [0.0] * 22,
        "read_task": list(range(1, 23)),
        "read_object": list(range(22)),
    }
    path = tmp_path / "chain.json"
    path.write_text(json.dumps(graph))
    return path


@pytest.fixture
def fan(tmp_path: Path) -> Path:
    """Write twelve commands of ten minutes that can run side by side, as a workflow."""
    tasks = "".join(f'[[task]]\nname = "t{k}"\nrun = "echo t{k}"\nseconds = 600\n' for k in range(12))
    path = tmp_path / "flow.toml"
    path.write_text(tasks)
    (tmp_path / "offers.toml").write_text(OFFERS)
    return path


def test_least_cost_rents_nothing_unless_a_deadline_asks_for_it(run: Run, diamond: Path) -> None:
    calm = run("plan", diamond, "--pools", POOLS, "--output", "json")
    assert calm.code == 0
    assert calm.json["cost_usd"] == 0
    assert calm.json["keeps_limits"]
    assert calm.json["rentals"] == []
    limit = 0.9 * calm.json["makespan_s"]
    hurried = run("plan", diamond, "--pools", POOLS, "--deadline", f"{limit}s", "--output", "json")
    assert hurried.code == 0
    assert hurried.json["cost_usd"] == sum(one["cost_usd"] for one in hurried.json["rentals"]) > 0
    assert hurried.json["makespan_s"] <= limit
    assert hurried.json["keeps_limits"]


def test_a_missed_deadline_is_said_in_these_words_with_exit_code_4(run: Run, chain: Path) -> None:
    ran = run("plan", chain, "--pools", "own:1,cloud:0-4@3.6", "--deadline", "10min")
    assert ran.code == 4
    assert "takes 23.0 min; misses the 10 min deadline by 13.0 min;" in " ".join(ran.out.split())
    same = run("plan", chain, "--pools", "own:1", "--deadline", "10min", "--output", "json")
    assert same.code == 4
    assert same.json["verdict"] == ["takes 23.0 min; misses the 10 min deadline by 13.0 min"]
    assert same.json["keeps_limits"] is False


@pytest.mark.parametrize("amount", ["0.5", "0.5USD", "$0.5"])
def test_a_budget_that_nothing_keeps_is_said(run: Run, diamond: Path, amount: str) -> None:
    poor = run("plan", diamond, "--pools", "cloud:0-8@3600", "--budget", amount)
    assert poor.code == 4
    assert re.search(r"costs \$\S+; exceeds the \$0\.50 budget by \$[\d.,]+", " ".join(poor.out.split()))


def test_a_plan_names_every_rental_and_is_saved_drawn_simulated_and_run(run: Run, fan: Path, tmp_path: Path) -> None:
    saved, picture = tmp_path / "plan.json", tmp_path / "plan.html"
    offers = ("--pools", tmp_path / "offers.toml", "--deadline", "40min")
    made = run("plan", fan, *offers, "--save", saved, "--gantt", picture)
    assert made.code == 0, made.err
    for word in ("cloud-", "request at", "billed", "meets the 40 min deadline", "assumed"):
        assert word in made.out
    document = json.loads(saved.read_text())
    assert document["rentals"]
    assert all(one["request_s"] == pytest.approx(one["start_s"] - 90.0) for one in document["rentals"])
    assert len(document["assignment"]) == len(document["order"]) == len(document["start_s"]) == 12
    assert document["latest_s"] <= 2400.0
    assert picture.stat().st_size > 0
    again = run("simulate", saved, "--output", "json")
    assert again.json["makespan_s"] == pytest.approx(document["makespan_s"])
    ran = run("run", saved, "--output", "json")
    assert ran.code == 0, ran.err
    assert ran.json["status"] == "done"


def test_the_policy_that_is_asked_for_plans(run: Run, fan: Path, tmp_path: Path) -> None:
    offers = ("--pools", tmp_path / "offers.toml", "--deadline", "70min")
    found = run("plan", fan, *offers, "--policy", "etf", "--output", "json")
    assert found.json["policy"] == "etf"
    run("plan", fan, *offers, "--policy", "hefty").assert_refused("heft")


def test_quiet_prints_the_cost(run: Run, diamond: Path) -> None:
    assert run("plan", diamond, "--pools", POOLS, "--output", "quiet").out.strip() == "0.0"


def test_what_is_assumed_is_in_every_output(run: Run, diamond: Path) -> None:
    words = "Billing of cloud is assumed: per second, at least 60 s"
    assert any(words in note for note in run("plan", diamond, "--pools", POOLS, "--output", "json").json["notes"])
    assert words in " ".join(run("plan", diamond, "--pools", POOLS).out.split())


def test_refusals(run: Run, diamond: Path) -> None:
    run("plan", diamond, "--pools", POOLS, "--objective", "glory").assert_refused("objective")
    run("plan", diamond, "--pools", POOLS, "--budget", "much").assert_refused("budget", "20USD")
    run("plan", diamond, "--pools", POOLS, "--budget", "0").assert_refused("budget", "20USD")


def test_a_replay_does_not_pass_over_a_minimum(run: Run, tmp_path: Path) -> None:
    (tmp_path / "offers.toml").write_text(OFFERS)
    trace = "trace:lublin?num_jobs=20&num_procs=4&seed=1"
    run("replay", trace, "--pools", tmp_path / "offers.toml").assert_refused("pool cloud", "minimum")
