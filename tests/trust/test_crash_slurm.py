"""Whoever follows a run on Slurm is killed again and again: no job is lost, none is done twice."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import crash_slurm_run as crash_run
import pytest

from stretto.engines.slurm.client.client import is_installed
from stretto.engines.slurm.testbed.conf import TestbedSpec
from stretto.engines.slurm.testbed.testbed import Testbed


@pytest.fixture
def testbed() -> Iterator[Testbed]:
    """Four nodes of one processor."""
    if not is_installed():
        pytest.skip("Slurm is not installed: make slurm")
    with tempfile.TemporaryDirectory(prefix="slurm-", ignore_cleanup_errors=True) as folder:
        found = Testbed.up(Path(folder) / "bed", TestbedSpec(num_nodes=4, cpus_per_node=1))
        yield found
        assert found.down() == []


@pytest.mark.parametrize("num_kills", [3, pytest.param(100, marks=pytest.mark.long)])
def test_every_task_runs_once(testbed: Testbed, tmp_path: Path, num_kills: int) -> None:
    words = [sys.executable, crash_run.__file__, str(testbed.conf), str(tmp_path), str(num_kills), "11"]
    done = subprocess.run(words, stdout=subprocess.PIPE, check=True)
    runs = json.loads(done.stdout)
    assert sum(run["num_kills"] for run in runs) >= num_kills
    for run in runs:
        for word in ("begin", "end"):
            times = Counter(int(line.split()[1]) for line in run["lines"] if line.startswith(word))
            assert times == dict.fromkeys(range(crash_run.NUM_TASKS), 1)
    print(f"{sum(run['num_kills'] for run in runs)} kills in {len(runs)} runs of {crash_run.NUM_TASKS} tasks")
