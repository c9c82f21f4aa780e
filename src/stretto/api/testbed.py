"""A private Slurm to try things on: real daemons, invented nodes, no root needed."""

from __future__ import annotations

from pathlib import Path

from stretto.engines.slurm.testbed.conf import TestbedSpec
from stretto.engines.slurm.testbed.testbed import Testbed
from stretto.runlog.place import default_path


def start_testbed(
    folder: Path | None = None, *, nodes: int = 4, cpus: int = 8, gpus: int = 0, auth: str = "munge", rest: bool = False
) -> Testbed:
    """Start a private Slurm in a folder; ``gpus`` are those of each of the last half of its nodes."""
    return Testbed.up(_folder(folder), TestbedSpec(nodes, cpus, gpus, auth=auth, has_rest=rest))


def find_testbed(folder: Path | None = None) -> Testbed:
    """Return the private Slurm of a folder; raise where there is none."""
    bed = Testbed(_folder(folder).resolve())
    _ = bed.spec  # raises where there is none
    return bed


def _folder(given: Path | None) -> Path:
    return given if given is not None else default_path().parent / "slurm-testbed"
