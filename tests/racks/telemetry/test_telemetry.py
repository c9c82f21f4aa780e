"""Reading a host: the real one, a made-up one with known rates, and one that tells nothing."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from stretto.errors import InvalidInput
from stretto.racks.telemetry.host import HostTelemetry


class Host:
    """A folder that looks like a host whose counters advance with every look at the clock."""

    def __init__(self, root: Path) -> None:
        self.root, self.now = root, 0.0
        (root / "proc/net").mkdir(parents=True)
        (root / "sys/class/net/eth0").mkdir(parents=True)
        (root / "sys/class/net/eth0/speed").write_text("8000\n")
        (root / "proc/meminfo").write_text("MemTotal: 1000 kB\nMemAvailable: 250 kB\n")

    def clock(self) -> float:
        self.now += 1.0
        busy, idle = 60 * self.now, 40 * self.now
        (self.root / "proc/stat").write_text(f"cpu 1 2 3 4 5 6\ncpu0 {busy:.0f} 0 0 {idle:.0f} 0 0 0 0\n")
        sent = 250e6 * self.now
        (self.root / "proc/net/dev").write_text(f"a\nb\n eth0: {sent:.0f} 0 0 0 0 0 0 0 {sent:.0f} 0\n")
        return self.now


def test_a_host_with_known_rates(tmp_path):
    host = Host(tmp_path)
    reading = HostTelemetry(tmp_path, host.clock).read(num_samples=3, interval_s=0.001)
    found = dict(zip(reading.names, reading.mean))
    assert found["core/cpu0"] == pytest.approx(0.6, abs=0.02)
    assert found["nic/eth0"] == pytest.approx(0.5)  # 500 MB/s of 8 Gbit/s
    assert found["memory/in-use"] == pytest.approx(0.75)
    assert np.all(reading.num == 3)


def test_a_host_that_tells_nothing_is_no_error(tmp_path):
    reading = HostTelemetry(tmp_path).read(num_samples=2, interval_s=0.001)
    assert reading.names == ()
    assert any("/proc/stat" in note for note in reading.notes)


def test_this_host():
    if not Path("/proc/stat").exists():
        pytest.skip("no /proc on this system")
    reading = HostTelemetry().read(num_samples=2, interval_s=0.02)
    assert any(name.startswith("core/") for name in reading.names)
    assert np.all(np.isfinite(reading.mean))
    assert np.all(reading.mean >= 0)


def test_one_sample_has_no_spread():
    with pytest.raises(InvalidInput):
        HostTelemetry().read(num_samples=1)
