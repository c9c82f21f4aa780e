"""``stretto plan WORKFLOW --pools``: where to run a workflow, and at what cost."""

from __future__ import annotations

import re
from pathlib import Path

from .conftest import Run

POOLS = "own:1,cloud:0-8@3600"  # a dollar per second: nothing is rented without need


def test_least_cost_rents_nothing_unless_a_deadline_asks_for_it(run: Run, diamond: Path) -> None:
    calm = run("plan", diamond, "--pools", POOLS, "--output", "json")
    assert calm.code == 0
    best = calm.json["tried"][0]
    assert best["cost_usd"] == 0
    assert calm.json["keeps_limits"]
    hurried = run("plan", diamond, "--pools", POOLS, "--deadline", f"{0.9 * best['makespan_s']}s", "--output", "json")
    assert hurried.json["tried"][0]["cost_usd"] > 0
    assert hurried.json["tried"][0]["makespan_s"] <= 0.9 * best["makespan_s"]
    assert hurried.json["keeps_limits"]


def test_a_limit_that_nothing_keeps_is_said(run: Run, diamond: Path) -> None:
    ran = run("plan", diamond, "--pools", POOLS, "--deadline", "1ms")
    assert ran.code == 0
    assert "no way that was tried keeps the limits" in ran.out
    assert "late" not in ran.out.split()
    assert re.search(r"^takes \S+ \S+; misses the 0\.001 s deadline by \S+ \S+$", ran.out, re.MULTILINE)
    poor = run("plan", diamond, "--pools", "cloud:0-8@3600", "--spend", "0.5")
    assert re.search(r"^costs \$\S+, \$\S+ more than --spend 0\.5$", poor.out, re.MULTILINE)


def test_quiet_prints_the_cost(run: Run, diamond: Path) -> None:
    assert run("plan", diamond, "--pools", POOLS, "--output", "quiet").out.strip() == "0.0"


def test_an_unknown_objective_is_an_error(run: Run, diamond: Path) -> None:
    ran = run("plan", diamond, "--pools", POOLS, "--objective", "glory")
    assert ran.code != 0
    assert "objective" in ran.err
