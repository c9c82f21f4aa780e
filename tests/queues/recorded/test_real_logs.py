"""On real logs: the record has the mean wait of the log's own column, and calibrated replays come nearer to it."""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import pytest

import stretto
from real_data import find_data
from stretto.api.replay import measured_replay

DATA = find_data()
LOGS = sorted((DATA / "swf").glob("*.swf.gz")) if DATA is not None else []
pytestmark = pytest.mark.skipif(not LOGS, reason="no real logs: set STRETTO_DATA")
QUICK = ("OSC-Clust", "SDSC-Par")
SMALL = (*QUICK, "CTC-SP2", "SDSC-SP2", "Theta")
#: Of the log whose header does not say it.
CERIT_PROCS = 2176


def own_waits(path: Path) -> list[int]:
    """Return the waits of the file, without our reader; -1 means unknown, and so does a job without processors."""
    with gzip.open(path, "rt", errors="replace") as lines:
        rows = [line.split() for line in lines if line.strip() and not line.startswith(";")]
    return [int(float(row[2])) for row in rows if float(row[2]) >= 0 and max(float(row[4]), float(row[7])) >= 1]


def check_recorded(path: Path) -> None:
    waits = own_waits(path)
    trace = stretto.load_trace(path)
    size = trace.max_procs or CERIT_PROCS
    if not waits:
        with pytest.raises(stretto.errors.InvalidInput, match="no recorded waits"):
            stretto.replay(trace, size, strategy="recorded")
        return
    found = stretto.replay(trace, size, strategy="recorded")
    assert found.metrics.num_jobs == len(waits)
    assert found.metrics.wait_s.mean == float(np.mean(np.array(waits, dtype=np.float64))) == sum(waits) / len(waits)


def log_named(beginning: str) -> Path:
    found = [path for path in LOGS if path.name.startswith(beginning)]
    if not found:
        pytest.skip(f"{beginning} is not among the real logs")
    return found[0]


@pytest.mark.parametrize("beginning", QUICK)
def test_recorded_has_the_logs_own_mean_wait(beginning: str) -> None:
    check_recorded(log_named(beginning))


@pytest.mark.long
@pytest.mark.parametrize("path", LOGS, ids=lambda path: path.name.split(".")[0])
def test_recorded_has_the_own_mean_wait_of_every_log(path: Path) -> None:
    check_recorded(path)


def check_nearer(beginning: str) -> None:
    found = measured_replay(log_named(beginning), calibrate=True, timed=False).calibration
    assert found is not None
    assert abs(found.calibrated.mean_difference_s) < abs(found.plain.mean_difference_s)
    assert found.calibrated.rank_correlation > found.plain.rank_correlation


@pytest.mark.parametrize("beginning", QUICK)
def test_a_calibrated_replay_is_nearer(beginning: str) -> None:
    check_nearer(beginning)


@pytest.mark.long
@pytest.mark.parametrize("beginning", SMALL)
def test_calibrated_replays_of_more_logs_are_nearer(beginning: str) -> None:
    check_nearer(beginning)
