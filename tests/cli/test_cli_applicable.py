"""Options without effect beside another one are errors that name both."""

from __future__ import annotations

from pathlib import Path

import pytest

from .conftest import CLUSTER, Run

POOLS = ("--pools", "own:1,cloud:0-8@3.6")
TRACE = "trace:lublin?num_jobs=20&num_procs=8&seed=1"


@pytest.mark.parametrize("option", [("--cluster", "cpu:2"), ("--discipline", "sequence")], ids=" ".join)
def test_options_of_one_plan_do_not_apply_to_pools(run: Run, diamond: Path, option: tuple[str, ...]) -> None:
    run("plan", diamond, *POOLS, *option).assert_refused(option[0], "--pools")


@pytest.mark.parametrize("option", [("--deadline", "2h"), ("--budget", "3"), ("--objective", "time")], ids=" ".join)
def test_options_of_pools_do_not_apply_to_a_cluster(run: Run, diamond: Path, option: tuple[str, str]) -> None:
    run("plan", diamond, "-c", "cpu:2", *option).assert_refused(option[0], "--pools", "--cluster")


def test_a_configured_default_is_passed_over(run: Run, diamond: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STRETTO_CLUSTER", "cpu:2")
    assert run("plan", diamond, *POOLS, "--output", "quiet").code == 0


@pytest.mark.parametrize(
    ("words", "named"),
    [
        (("--policies", "heft"), "--policies"),
        (("--seeds", "1"), "--seeds"),
        (("--contention", "fair"), "--contention"),
        (("--window-size", "5"), "--windows"),
        (("--pool-rule", "cheapest"), "--pools"),
    ],
)
def test_a_comparison_of_a_trace(run: Run, words: tuple[str, str], named: str) -> None:
    run("compare", TRACE, "--strategies", "fcfs", *words).assert_refused(words[0], named)


@pytest.mark.parametrize(
    "words", [("--backfill", "easy"), ("--estimates", "user"), ("--kill",), ("--strict",), ("--seed", "1")]
)
def test_a_comparison_of_graphs(run: Run, diamond: Path, words: tuple[str, ...]) -> None:
    run("compare", diamond, "-c", CLUSTER, "--policies", "heft", *words).assert_refused(words[0], "graphs")


def test_commands_about_saved_things(run: Run, diamond: Path, tmp_path: Path) -> None:
    saved = tmp_path / "plan.json"
    assert run("plan", diamond, "-c", CLUSTER, "--save", saved).code == 0
    run("gantt", saved, "-o", tmp_path / "g.svg", "--policy", "etf").assert_refused("--policy", "plan.json")
    run("simulate", saved, "--seed", "3").assert_refused("--seed", "--noise")
    run("run", "--resume", "latest", "--attempts", "5").assert_refused("--attempts", "--resume")
    run("run", diamond, "--resume", "latest").assert_refused("WORKFLOW", "--resume")
    run("train", "doppler", "--continue", "latest").assert_refused("ALGORITHM", "--continue")


def test_other_commands(run: Run, tmp_path: Path) -> None:
    run("replay", TRACE, "--pool-rule", "fastest").assert_refused("--pool-rule", "--pools")
    run("prices", "pool", tmp_path / "none.csv", "--bid", "3").assert_refused("--bid", "--spot-series")
    run("prices", "list", tmp_path / "none.csv", "--gpus", "3").assert_refused("--gpus", "--gpu")
    run("train", "mars", TRACE, "--dim", "batch=3").assert_refused("--dim", "mars")
    run("rack", "two-nics", "--weights", tmp_path / "w.npz").assert_refused("--weights", "--by srpt-belief")
    run("convert", "workload:fft", tmp_path / "o.json", "--from", "dot").assert_refused("--from", "workload:fft")
    run("run", "kernels:matmul", "-c", "cpu:1", "--scale", "2").assert_refused("--scale", "kernels:matmul")
