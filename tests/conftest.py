"""Shared fixtures: where the real data is, and small named instances."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from real_data import find_data

# Shells start background jobs with Ctrl-C ignored, and all that those start would inherit that: tests of Ctrl-C too.
if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="session")
def data_dir() -> Path:
    """The folder of real data; the test is skipped where there is none."""
    found = find_data()
    if found is None:
        pytest.skip("no real data: set STRETTO_DATA to its folder")
    return found


@pytest.fixture(scope="session", autouse=True)
def own_run_log(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Keep what tests run out of the user's run log; processes that they start inherit this."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("STRETTO_HOME", str(tmp_path_factory.mktemp("home")))
        yield
