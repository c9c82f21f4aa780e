"""Watching a host beside a run: the belief follows its readings, doubts what it has not read, and lands in the log."""

from __future__ import annotations

import itertools
from pathlib import Path

import numpy as np
import pytest

from stretto.racks.telemetry.host import HostTelemetry
from stretto.reports.page.view import run_view
from stretto.reports.racks.belief import EVENT, WIDTH_95
from stretto.reports.racks.host import HostBelief, HostWatch, host_topology
from stretto.reports.racks.topology import drawn_machines
from stretto.runlog import RunLog


def test_a_belief_comes_to_hold_a_steady_load() -> None:
    rng, inside, num_looks = np.random.default_rng(0), 0, 400
    belief, truth = HostBelief(1), 0.6
    for _ in range(num_looks):
        samples = truth + rng.normal(0.0, 0.1, 4)
        belief.take_in(np.array([samples.mean()]), np.array([samples.std(ddof=1)]), np.array([4]), 1.0)
        inside += abs(belief.mean[0] - truth) <= WIDTH_95 * np.sqrt(belief.variance[0])
    assert belief.mean[0] == pytest.approx(truth, abs=0.1)
    assert inside / num_looks > 0.9


def test_what_is_not_read_becomes_doubtful_again() -> None:
    belief = HostBelief(2)
    belief.take_in(np.array([0.9, 0.9]), np.array([0.01, 0.01]), np.array([4, 4]), 1.0)
    sure = belief.variance.copy()
    for _ in range(60):
        belief.take_in(np.array([0.9, np.nan]), np.array([0.01, np.nan]), np.array([4, 0]), 1.0)
    assert belief.variance[0] < 2 * sure[0]
    assert belief.variance[1] > 50 * sure[1]
    assert belief.mean[1] == pytest.approx(0.3, abs=0.01)  # back at the prior


def test_one_wild_reading_moves_less_than_a_calm_one() -> None:
    calm, wild = HostBelief(1), HostBelief(1)
    for belief in (calm, wild):
        for _ in range(20):
            belief.take_in(np.array([0.2]), np.array([0.05]), np.array([4]), 1.0)
    calm.take_in(np.array([0.9]), np.array([0.01]), np.array([4]), 1.0)
    wild.take_in(np.array([0.9]), np.array([0.9]), np.array([4]), 1.0)
    assert wild.mean[0] < calm.mean[0]


def test_the_host_is_a_machine_with_all_its_sources() -> None:
    topology = host_topology(["memory/in-use", "core/cpu0", "core/cpu1", "nic/eth0"])
    (machine,) = drawn_machines(topology)
    (memory,) = machine["boxes"]
    assert memory["resource"] == 0
    assert [part["name"] for part in memory["inside"]] == ["cpu0", "cpu1", "eth0"]
    assert [part["resource"] for part in memory["inside"]] == [1, 2, 3]


def test_a_watch_writes_into_a_run_until_it_is_over(tmp_path: Path) -> None:
    (tmp_path / "proc/net").mkdir(parents=True)
    (tmp_path / "proc/stat").write_text("cpu0 50 0 0 50 0 0 0 0\ncpu10 0 0 0 100 0 0 0 0\ncpu2 0 0 0 100 0 0 0 0\n")
    (tmp_path / "proc/meminfo").write_text("MemTotal: 1000 kB\nMemAvailable: 250 kB\n")
    clock = itertools.count()
    telemetry = HostTelemetry(tmp_path, clock=lambda: float(next(clock)))
    with RunLog.open(tmp_path / "runs.db") as log:
        run = log.start("run", "watched", {})
        with HostWatch(tmp_path / "runs.db", every_s=0.02, telemetry=telemetry) as watch:
            watch.begin(run.id)
        looks = log.events(run.id, kinds=[EVENT])
        view = run_view(log, run.id)
    assert looks  # one at least, however short the run was
    assert view["belief"]["resources"] == ["host/memory", "host/cpu0", "host/cpu2", "host/cpu10"]
    assert view["belief"]["raw"][0][-1] == 0.75
    assert 0.3 < view["belief"]["mean"][0][-1] <= 0.75
