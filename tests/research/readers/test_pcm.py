"""Rows of Intel's Performance Counter Monitor as readings."""

from __future__ import annotations

import numpy as np
import pytest
from research.readers.pcm import pcm_reading

from stretto.errors import InvalidInput


def test_columns_of_pcm_become_readings():
    rows = [{"IPC": 1.0, "READ": 10.0, "TEMP": 50.0}, {"IPC": 3.0, "READ": 30.0, "TEMP": 50.0}]
    reading = pcm_reading(rows, {"memory": 100e9})
    assert reading.names == ("memory/read", "perf/issue-slots")
    np.testing.assert_allclose(reading.mean, [0.2, 0.5])
    np.testing.assert_allclose(reading.sd, [np.sqrt(0.02), np.sqrt(0.125)])
    assert reading.notes == ("TEMP: not a column that is known",)
    with pytest.raises(InvalidInput, match="capacity of memory"):
        pcm_reading(rows, {})
    with pytest.raises(InvalidInput, match="2 or more"):
        pcm_reading(rows[:1], {"memory": 1.0})
