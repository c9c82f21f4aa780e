"""What a steering layer needs of a Slurm, whichever way it is reached."""

from __future__ import annotations

from typing import Protocol

from stretto.engines.slurm.jobs import SlurmJob, SlurmNode


class QueueClient(Protocol):
    """Looks at a queue and changes waiting jobs; by Slurm's programs (client.py) or over HTTP (rest.py)."""

    def queue(self, partition: str | None = None) -> list[SlurmJob]:
        """Return the jobs of a partition, or of all."""
        ...

    def nodes(self) -> list[SlurmNode]:
        """Return the nodes."""
        ...

    def update(self, job_id: int, **settings: int | str) -> bool:
        """Change a waiting job; return False where it waits no longer."""
        ...

    def restore_priority(self, job_id: int) -> bool:
        """Let Slurm compute a job's priority again."""
        ...
