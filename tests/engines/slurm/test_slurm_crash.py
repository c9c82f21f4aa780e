"""A hundred jobs while the controller crashes and the process that follows them is killed."""

from __future__ import annotations

import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import slurm_crash_run as crash_run

from stretto.engines.slurm.testbed.conf import TestbedSpec
from stretto.engines.slurm.testbed.testbed import Testbed


@pytest.fixture
def own_bed(slurm_place: Path) -> Iterator[Testbed]:
    """A Slurm that may be maltreated."""
    found = Testbed.up(slurm_place / "crash", TestbedSpec(num_nodes=4, cpus_per_node=1))
    yield found
    assert found.down() == []


def lines(book: Path, word: str) -> list[int]:
    if not book.exists():
        return []
    return [int(line.split()[1]) for line in book.read_text().splitlines() if line.startswith(word)]


def wait_for(book: Path, num_ended: int, process: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + 120.0
    while len(lines(book, "end")) < num_ended:
        assert time.monotonic() < deadline, "the run does not go on"
        assert process.poll() is None, "the run ended early"
        time.sleep(0.05)


def test_nothing_is_lost_and_nothing_done_twice(own_bed: Testbed, tmp_path: Path) -> None:
    book, folder = tmp_path / "book", tmp_path / "run"
    words = [sys.executable, crash_run.__file__, str(own_bed.conf), str(folder), str(book)]
    process = subprocess.Popen(words)
    try:
        wait_for(book, 15, process)
        own_bed.kill_controller()
        time.sleep(1.0)
        own_bed.start_controller()
        wait_for(book, 40, process)
    finally:
        process.kill()
        process.wait()
    time.sleep(0.5)  # Slurm goes on by itself
    subprocess.run(words, check=True, timeout=240.0)
    result = crash_run.follow(str(own_bed.conf), folder, book).check()
    assert Counter(lines(book, "end")) == dict.fromkeys(range(crash_run.NUM_TASKS), 1)
    plan = crash_run.make_plan()
    for device in range(4):
        planned = [task for task in plan.order.tolist() if plan.assignment[task] == device]
        assert sorted(planned, key=lambda task: result.start_s[task]) == planned
    source, target, _ = crash_run.GRAPH.edges
    assert np.all(result.end_s[source] <= result.start_s[target])
