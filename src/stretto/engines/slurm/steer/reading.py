"""What Slurm shows of the jobs that a steering layer changes, at one moment."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from stretto.engines.slurm.client.jobs import SlurmJob
from stretto.engines.slurm.steer.factors import Factors
from stretto.engines.slurm.steer.queue_client import QueueClient

Mode = Literal["sitefactor", "priority"]
MODES: tuple[Mode, ...] = ("sitefactor", "priority")


@dataclass(frozen=True)
class Reading:
    """The queue, and what the priorities in it are made of.

    Attributes
    ----------
    jobs
        Those that have not ended, by number.
    factors
        None where Slurm is reached in a way that does not show them.
    """

    jobs: Mapping[int, SlurmJob]
    factors: Mapping[int, Factors] | None

    @staticmethod
    def take(client: QueueClient) -> Reading:
        """Ask Slurm."""
        return Reading.of(client.queue(), client)

    @staticmethod
    def of(queue: list[SlurmJob], client: QueueClient) -> Reading:
        """Ask for what is not known of a queue yet."""
        return Reading({job.job_id: job for job in queue if not job.is_ended}, client.factors())

    def value(self, job: int, mode: Mode) -> int | None:
        """Return the number that is set by this mode; None where Slurm does not show it."""
        if mode == "priority":
            number = self.jobs[job].priority
            return int(number) if number == number else None
        found = self.factors.get(job) if self.factors is not None else None
        return found.site if found is not None else None

    def is_priority_set(self, job: int) -> bool | None:
        """Whether the priority is a number that somebody set; None where Slurm does not show that."""
        found = self.factors.get(job) if self.factors is not None else None
        return found.is_set if found is not None else None

    def is_known(self, job: int, mode: Mode) -> bool:
        """Whether it can be seen what a job would have to get back; what cannot be read at all is not waited for."""
        if self.factors is None:
            return True
        return job in self.factors and (mode == "priority" or self.factors[job].site is not None)

    def before(self, job: int, mode: Mode) -> int | None:
        """Return what a job has to get back some day: a number, or None for a priority that Slurm computes."""
        if mode == "sitefactor":
            return self.value(job, mode) or 0
        return self.value(job, mode) if self.is_priority_set(job) else None
