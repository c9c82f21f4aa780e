"""Which Slurm an engine uses, and where it writes."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class SlurmAccess:
    """What engines on Slurm have in common.

    Attributes
    ----------
    conf
        The ``slurm.conf`` of the cluster; None leaves it to the environment.
    folder
        Where the run writes, on a file system that all nodes share; None makes one in the current directory.
    partition
        As ``sbatch`` has it.
    """

    conf: str | None = None
    folder: str | None = None
    partition: str | None = None
