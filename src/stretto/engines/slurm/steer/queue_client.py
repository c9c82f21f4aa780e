"""What a steering layer needs of a Slurm, whichever way it is reached."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from stretto.engines.slurm.client.jobs import SlurmJob, SlurmNode
from stretto.engines.slurm.steer.factors import Factors


class QueueClient(Protocol):
    """Looks at a queue and changes waiting jobs; by Slurm's programs (client.py) or over HTTP (rest.py)."""

    def queue(self, partition: str | None = None) -> list[SlurmJob]:
        """Return the jobs of a partition, or of all."""
        ...

    def nodes(self) -> list[SlurmNode]:
        """Return the nodes."""
        ...

    def partitions(self) -> list[str]:
        """Return the names of the partitions."""
        ...

    def factors(self) -> Mapping[int, Factors] | None:
        """Return what the priorities of pending jobs are made of; None where that cannot be read."""
        ...

    def update(self, job: int | SlurmJob, **settings: int | str) -> bool:
        """Change a waiting job; return False where it waits no longer, or is held and cannot be changed now."""
        ...

    def release(self, job: int | SlurmJob) -> bool:
        """Let a job that is held go on; Slurm computes its priority again, also where it was not held."""
        ...

    def restore_priority(self, job: int | SlurmJob) -> bool:
        """Let Slurm compute a job's priority again, by a hold and a release."""
        ...
