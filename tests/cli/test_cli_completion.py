"""Completion: what the shells' scripts ask for is answered, and the scripts themselves are there."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from stretto import catalog
from stretto.cli import completion

# The way in which the program is installed: completion hangs on its name.
STRETTO = Path(sys.executable).with_name("stretto")


def _ask(**environment: str) -> str:
    done = subprocess.run(
        [STRETTO], env=os.environ | environment, capture_output=True, text=True, timeout=60, check=False
    )
    return done.stdout


def _bash(words: str) -> list[str]:
    last = len(words.split(" ")) - 1
    return _ask(_STRETTO_COMPLETE="complete_bash", COMP_WORDS=words, COMP_CWORD=str(last)).split()


def test_commands_policies_and_strategies_in_bash() -> None:
    assert "replay" in _bash("stretto re")
    assert _bash("stretto plan --policy he") == ["heft"]
    assert set(_bash("stretto replay --strategy s")) == {name for name in catalog.STRATEGIES if name[0] == "s"}
    assert _bash("stretto compare --policies heft,pe") == ["heft,peft"]
    assert _bash("stretto train do") == ["doppler"]


def test_the_other_shells() -> None:
    words = "stretto plan --policy anne"
    assert "annealing" in _ask(_STRETTO_COMPLETE="complete_zsh", _TYPER_COMPLETE_ARGS=words)
    fish = {"_TYPER_COMPLETE_ARGS": words, "_TYPER_COMPLETE_FISH_ACTION": "get-args"}
    assert "annealing" in _ask(_STRETTO_COMPLETE="complete_fish", **fish)


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_scripts_can_be_shown_and_installed(shell: str, tmp_path: Path) -> None:
    variables = {"HOME": str(tmp_path), "_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION": "1"}
    for option in ("--show-completion", "--install-completion"):
        done = subprocess.run(
            [STRETTO, option, shell],
            env=os.environ | variables,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert done.returncode == 0, done.stderr
    written = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert any("_STRETTO_COMPLETE" in path.read_text() for path in written)


def test_workloads_once_the_word_looks_like_one() -> None:
    assert completion.graph_sources("") == []
    assert completion.graph_sources("./file") == []
    assert "workload:montage" in completion.graph_sources("wor")
    assert completion.graph_sources("workload:montag") == ["workload:montage"]


def test_lists_are_completed_after_the_last_comma() -> None:
    assert completion.strategy_lists("fcfs,sj") == ["fcfs,sjf"]
    assert completion.policy_lists("hef") == ["heft"]
