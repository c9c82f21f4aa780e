"""Foreign load of cores by their counters: known loads, files that vanish or lie, and the cost of looking."""

from __future__ import annotations

import os
import threading
import time

import pytest

from racks.telemetry.fake_host import FakeHost
from stretto.racks.telemetry.core_times import commands_time, thread_time, tree_time
from stretto.racks.telemetry.host import HostTelemetry
from stretto.racks.telemetry.sense import DeviceWorker, HostSampler, HostSense

PID = 77


def sensed(fake: FakeHost) -> HostSense:
    sense = HostSense(fake.root, clock=fake.clock)
    fake.run_thread(PID, 0.0)
    sense.watch(0, DeviceWorker(PID, PID, (0,)))
    fake.pass_time(0.1)
    sense.step()
    return sense


def test_a_task_that_waits_half_of_its_time_lost_half_of_the_core(tmp_path):
    fake = FakeHost(tmp_path)
    sense = sensed(fake)
    for _ in range(30):
        fake.pass_time(0.1, {0: 1.0, 1: 0.0})
        fake.run_thread(PID, 0.05, 0.05)
        sense.step()
    assert sense.lost(0, 0.01) == pytest.approx(0.5, abs=0.02)
    assert sense.loads.now[1] == pytest.approx(0.0, abs=0.02)
    assert sense.problem() is None


def test_our_own_work_is_no_foreign_load(tmp_path):
    fake = FakeHost(tmp_path)
    sense = sensed(fake)
    for _ in range(30):
        fake.pass_time(0.1, {0: 1.0})
        fake.run_thread(PID, 0.1)
        sense.step()
    assert sense.lost(0, 0.01) < 0.02


def test_a_busy_core_without_a_task_would_be_shared(tmp_path):
    fake = FakeHost(tmp_path)
    sense = sensed(fake)
    for _ in range(30):
        fake.pass_time(0.1, {0: 1.0})
        sense.step()
    assert sense.lost(0, 0.01) == pytest.approx(0.5, abs=0.02)


def test_without_workers_nothing_is_called_foreign(tmp_path):
    fake = FakeHost(tmp_path)
    sense = HostSense(tmp_path, clock=fake.clock)
    fake.pass_time(1.0, {0: 1.0, 1: 1.0})
    sense.step()
    assert sense.lost(0, 1.0) == 0.0


def test_a_core_that_goes_offline_is_told_and_comes_back(tmp_path):
    fake = FakeHost(tmp_path)
    sense = sensed(fake)
    fake.write("sys/devices/system/cpu/online", "0\n")
    fake.pass_time(0.1)
    sense.step()
    assert sense.problem() == "cpu1 went offline"
    fake.write("sys/devices/system/cpu/online", "0-1\n")
    fake.pass_time(0.1)
    sense.step()
    assert sense.problem() is None


@pytest.mark.parametrize(
    ("stat", "words"),
    [
        ("", "/proc/stat no longer has cpu0"),
        ("cpu0 1 0 0 0 0 0 0 0\n", "/proc/stat no longer has cpu1"),
        ("cpu0 99999 0 0 0 0 0\ncpu1 0 0 0 0 0 0\n", "the counter of cpu0 says"),
        ("cpu0 x y z\ncpu1 \xff\n", "/proc/stat no longer has cpu0"),
    ],
)
def test_counters_that_vanish_or_lie_are_told(tmp_path, stat, words):
    fake = FakeHost(tmp_path)
    sense = sensed(fake)
    fake.pass_time(0.1)
    fake.write("proc/stat", stat)
    sense.step()
    assert words in (sense.problem() or "")


def test_a_counter_that_goes_backwards_is_told(tmp_path):
    fake = FakeHost(tmp_path)
    fake.pass_time(10.0, {0: 1.0})
    sense = sensed(fake)
    fake.busy_s[0] = 1.0
    fake.pass_time(0.1)
    sense.step()
    assert "went backwards" in (sense.problem() or "")


def test_old_readings_are_stale(tmp_path):
    fake = FakeHost(tmp_path)
    sense = sensed(fake)
    fake.pass_time(5.0)
    assert "5.0 s old" in (sense.problem() or "")


def test_a_host_without_counters_says_so(tmp_path):
    sense = HostSense(tmp_path)
    sense.step()
    assert "cannot be read" in (sense.problem() or "")


def test_a_worker_that_is_gone_leaves_its_core_unknown_for_a_moment(tmp_path):
    fake = FakeHost(tmp_path)
    sense = sensed(fake)
    (tmp_path / f"proc/{PID}/task/{PID}/schedstat").unlink()
    fake.pass_time(0.1, {0: 1.0})
    sense.step()
    assert sense.problem() is None
    assert sense.worker_time(0) is None


def test_time_of_threads_trees_and_commands(tmp_path):
    fake = FakeHost(tmp_path)
    stat = "{} (a b) c) S 1 1 1 0 -1 0 0 0 0 0 {} {} {} {} 20 0 1 0\n"
    fake.write("proc/5/task/5/stat", stat.format(5, 100, 50, 0, 0))
    found = thread_time(tmp_path, 5, 5)
    assert found is not None
    assert found.run_s == 1.5
    fake.write("proc/5/task/5/children", "6 ")
    fake.write("proc/6/task/6/children", "7\n")
    fake.write("proc/6/stat", stat.format(6, 10, 10, 5, 5))
    fake.write("proc/7/stat", stat.format(7, 70, 0, 0, 0))
    assert tree_time(tmp_path, 5) == pytest.approx(1.0)
    fake.write("proc/6/status", "Name:\tx\nCpus_allowed_list:\t1\n")
    assert commands_time(tmp_path, 5, frozenset({1})) == pytest.approx(1.0)
    assert commands_time(tmp_path, 5, frozenset({0})) == 0.0
    assert thread_time(tmp_path, 8, 8) is None


def test_disks_pressure_and_both_kinds_of_control_groups(tmp_path):
    fake = FakeHost(tmp_path)
    (tmp_path / "sys/block/sda").mkdir(parents=True)
    telemetry = HostTelemetry(tmp_path, fake.clock)
    for step in range(2):
        fake.now_s += 1.0
        fake.write("proc/diskstats", f"8 0 sda 1 0 0 0 0 0 0 0 0 {250 * step} 0\n8 1 sda1 1 0 0 0 0 0 0 0 0 900 0\n")
        fake.write("proc/pressure/io", f"some avg10=0.00 total={400_000 * step}\nfull avg10=0.00 total=9\n")
        fake.write("sys/fs/cgroup/cpu/cpu.stat", f"nr_periods 1\nthrottled_time {step * 100_000_000}\n")
        found = telemetry.sample()
    assert found["disk/sda"] == pytest.approx(0.25)
    assert "disk/sda1" not in found
    assert found["pressure/io"] == pytest.approx(0.4)
    assert found["cgroup/throttled"] == pytest.approx(0.1)


def test_a_dear_sampler_slows_down_until_it_is_cheap():
    def dear() -> None:
        end_s = time.thread_time() + 0.002
        while time.thread_time() < end_s:
            pass

    sampler = HostSampler([dear], every_s=0.001, max_cost=0.02)
    sampler.start()
    while sampler.num_samples < 8:
        time.sleep(0.01)
    sampler.close()
    # Each sample but the last is paid for by the pause after it.
    assert (sampler.cpu_s / sampler.num_samples) * (sampler.num_samples - 1) <= 1.2 * 0.02 * sampler.elapsed_s


def test_a_sampler_that_fails_keeps_its_reason():
    def fails() -> None:
        raise RuntimeError("no such counter")

    sampler = HostSampler([fails], every_s=0.001)
    sampler.start()
    while sampler.is_alive:
        time.sleep(0.001)
    assert "no such counter" in (sampler.failure or "")
    sampler.close()


def test_the_real_host_counts_this_thread():
    before = thread_time(HostTelemetry().root, os.getpid(), threading.get_native_id())
    if before is None:
        pytest.skip("no /proc on this system")
    end_s = time.thread_time() + 0.05
    while time.thread_time() < end_s:
        pass
    after = thread_time(HostTelemetry().root, os.getpid(), threading.get_native_id())
    assert after is not None
    assert after.run_s > before.run_s
