"""Events that the kernel counts: a real one where it lets us, and why not where it does not."""

from __future__ import annotations

import pytest

from stretto.racks.telemetry.host import HostTelemetry
from stretto.racks.telemetry.perf_events import EVENTS, PerfCounters, PerfEvent, open_event, touch_pages


def test_faults_are_counted_where_the_kernel_lets_us():
    with PerfCounters() as perf:
        before = perf.totals()
        if "page-faults" not in before:
            pytest.skip(next(note for note in perf.notes if note.startswith("page-faults:")))
        touch_pages(1000)
        assert perf.totals()["page-faults"] >= before["page-faults"] + 500
    assert perf.totals() == {}


def test_an_event_that_opens_and_counts_nothing_is_left_out(monkeypatch):
    monkeypatch.setattr("stretto.racks.telemetry.perf_events._read", lambda file: 0.0)
    with PerfCounters() as perf:
        assert not {"cycles", "cpu-clock-ns", "page-faults"} & set(perf.totals())
    told = {note.partition(":")[0] for note in perf.notes}
    assert {"cycles", "cpu-clock-ns", "page-faults"} <= told


def test_an_event_that_nobody_counts_says_why():
    file, why = open_event(PerfEvent("nonsense", 77, 123456, ""), 0, -1)
    assert file is None
    assert why


def test_each_event_is_read_or_has_a_reason():
    with PerfCounters() as perf:
        read = set(perf.totals())
    told = {note.partition(":")[0] for note in perf.notes}
    assert read | told == {event.name for event in EVENTS}
    assert not read & told


def test_hardware_events_become_shares():
    before = {"cycles": 0.0, "instructions": 0.0, "llc-misses": 0.0}
    after = {"cycles": 1e9, "instructions": 2e9, "llc-misses": 1e7}
    found = HostTelemetry(memory_bytes_per_s=6.4e9)._events(before, after, 0.5)
    assert found == {"perf/issue-slots": pytest.approx(0.5), "perf/llc-traffic": pytest.approx(0.2)}


def test_a_reading_of_this_host_says_what_hardware_events_it_lacks():
    reading = HostTelemetry().read(num_samples=2, interval_s=0.01)
    has_cycles = "perf/issue-slots" in reading.names
    assert has_cycles or any(note.startswith("cycles:") for note in reading.notes)
