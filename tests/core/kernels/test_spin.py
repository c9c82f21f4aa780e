"""Watching a word of memory: it ends when the word is set, or after its rounds."""

from __future__ import annotations

import threading

import numpy as np
import pytest

from stretto.core.kernels import spin
from stretto.core.kernels.spin import IS_PLAIN, rounds_in, signal_and_watch

NOBODY = np.zeros(1, dtype=np.int64)


def test_a_word_that_is_set_is_taken_back_at_once() -> None:
    words = np.zeros(16, dtype=np.int64)
    words[8] = 1
    assert signal_and_watch(words, 1, NOBODY, 0, 1)
    assert words.sum() == 0
    assert not signal_and_watch(words, 1, NOBODY, 0, 10)


def test_the_words_of_others_are_set_and_no_more() -> None:
    words = np.zeros(40, dtype=np.int64)
    assert not signal_and_watch(words, 0, np.array([3, 1, 4]), 2, 1)
    assert words[::8].tolist() == [0, 1, 0, 1, 0]


@pytest.mark.skipif(IS_PLAIN, reason="uncompiled, the watcher would hold the interpreter's lock")
def test_a_watcher_sees_what_another_thread_writes() -> None:
    words = np.zeros(16, dtype=np.int64)
    seen = []
    watcher = threading.Thread(target=lambda: seen.append(signal_and_watch(words, 1, NOBODY, 0, rounds_in(60.0))))
    watcher.start()
    signal_and_watch(words, 0, np.array([1]), 1, 0)
    watcher.join(30.0)
    assert seen == [True]


def test_the_last_round_counts_and_a_word_is_seen_in_the_first() -> None:
    words = np.zeros(16, dtype=np.int64)
    words[0] = 1
    assert not signal_and_watch(words, 0, NOBODY, 0, 0)  # no round, no look
    assert words[0] == 1
    words[8] = 5
    assert signal_and_watch(words, 1, NOBODY, 0, 3)
    assert words.tolist() == [1] + [0] * 15


def test_rounds_are_counted_by_the_fastest_of_three_trials(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spin, "IS_PLAIN", False)
    watched: list[tuple[int, int, int]] = []
    monkeypatch.setattr(
        spin,
        "signal_and_watch",
        lambda words, mine, others, num_others, num_rounds: watched.append((mine, num_others, num_rounds)),
    )
    clock = iter([0.0, 5.0, 10.0, 12.0, 20.0, 24.0])
    monkeypatch.setattr(spin.time, "perf_counter", lambda: next(clock))
    assert rounds_in.__wrapped__(0.5) == 5_000  # 20,000 rounds took 2 s
    assert next(clock, None) is None
    assert watched == [(0, 0, 1), *[(0, 0, 20_000)] * 3]  # the first one compiles
    slow = iter([0.0, 9.0] * 3)
    monkeypatch.setattr(spin.time, "perf_counter", lambda: next(slow))
    assert rounds_in.__wrapped__(1e-9) == 1


def test_nothing_is_waited_for_without_a_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spin, "IS_PLAIN", True)
    assert rounds_in.__wrapped__(60.0) == 0
    if IS_PLAIN:
        assert spin._look_again() is None
    else:
        assert spin._nothing() is None
