"""The bandit over operators: every one is tried, gains are followed, the seed decides the rest."""

from __future__ import annotations

from stretto.graphs.doppler.bandit import OperatorBandit

NAMES = ("a", "b", "c")


def play(bandit: OperatorBandit, gains: dict[str, float], turns: int) -> list[str]:
    chosen = []
    for _ in range(turns):
        (name,) = bandit.choose(1)
        bandit.credit(name, gains[name], 1.0)
        chosen.append(name)
    return chosen


def test_every_operator_runs_once_before_any_runs_again() -> None:
    bandit = OperatorBandit(NAMES, 0, explore=0.0, memory=0.5)
    assert sorted(play(bandit, {"a": 0.1, "b": 0.2, "c": 0.3}, 3)) == ["a", "b", "c"]


def test_the_one_that_gains_most_has_most_turns_and_others_some() -> None:
    bandit = OperatorBandit(NAMES, 1, explore=0.2, memory=0.5)
    chosen = play(bandit, {"a": 0.0, "b": 0.2, "c": 0.1}, 60)
    assert chosen.count("b") > 40
    assert chosen.count("a") > 1
    assert bandit.shares() == {name: chosen.count(name) for name in NAMES}


def test_an_operator_that_no_longer_gains_loses_its_place() -> None:
    bandit = OperatorBandit(NAMES, 2, explore=0.0, memory=0.5)
    play(bandit, {"a": 1.0, "b": 0.2, "c": 0.1}, 5)
    assert "b" in play(bandit, {"a": 0.0, "b": 0.2, "c": 0.1}, 5)


def test_without_gains_they_take_turns() -> None:
    bandit = OperatorBandit(NAMES, 3, explore=0.0, memory=0.0)
    assert sorted(play(bandit, dict.fromkeys(NAMES, 0.0), 9)) == sorted(NAMES * 3)


def test_cores_take_different_operators_while_there_are_enough() -> None:
    bandit = OperatorBandit(NAMES, 4, explore=0.5, memory=0.5)
    assert sorted(bandit.choose(3)) == list(NAMES)
    assert len(bandit.choose(5)) == 5


def test_the_same_seed_chooses_the_same() -> None:
    gains = {"a": 0.3, "b": 0.2, "c": 0.1}
    runs = [play(OperatorBandit(NAMES, seed, explore=0.4, memory=0.5), gains, 30) for seed in (5, 5, 6)]
    assert runs[0] == runs[1] != runs[2]


def test_a_dropped_operator_gets_no_turn() -> None:
    bandit = OperatorBandit(NAMES, 7, explore=0.5, memory=0.5)
    bandit.drop("a")
    assert "a" not in play(bandit, {"b": 0.0, "c": 0.1}, 20)
