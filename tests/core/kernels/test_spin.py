"""Watching a word of memory: it ends when the word is set, or after its rounds."""

from __future__ import annotations

import threading

import numpy as np
import pytest

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
