"""A private Slurm for the tests of this folder; they are skipped where it is not installed."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from stretto.engines.slurm.client.client import SlurmClient, is_installed
from stretto.engines.slurm.testbed.conf import TestbedSpec
from stretto.engines.slurm.testbed.testbed import Testbed

MISSING = "Slurm is not installed: apt-get install slurmctld slurmd slurm-client slurm-wlm-basic-plugins munge"


@pytest.fixture(scope="session")
def slurm_place() -> Iterator[Path]:
    """A folder with a short path, for sockets."""
    if not is_installed():
        pytest.skip(MISSING)
    with tempfile.TemporaryDirectory(prefix="slurm-", ignore_cleanup_errors=True) as folder:
        yield Path(folder)


@pytest.fixture(scope="session")
def bed(slurm_place: Path) -> Iterator[Testbed]:
    """Four nodes of two processors, the last two with a GPU."""
    found = Testbed.up(slurm_place / "bed", TestbedSpec(num_nodes=4, cpus_per_node=2, gpus_per_node=1))
    try:
        yield found
    finally:
        assert found.down() == []


@pytest.fixture
def client(bed: Testbed) -> Iterator[SlurmClient]:
    """Its client; whatever a test leaves in the queue is cancelled."""
    found = SlurmClient(bed.commands)
    yield found
    found.cancel(job.job_id for job in found.queue() if not job.is_ended)
