"""What Stretto asks of the jobs of Snakemake.

Only the interface for scheduler plugins is used, and three attributes of jobs that it does not name (``rule.name``,
``wildcards_dict``, ``is_norun``); a job without them is its own rule.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Protocol

#: A job of Snakemake; hashed by identity.
SnakemakeJob = Any


class JobGraph(Protocol):
    """What a scheduler plugin may ask of the graph of jobs."""

    def needrun_jobs(self) -> Iterable[SnakemakeJob]: ...
    def job_dependencies(self, job: SnakemakeJob) -> Iterable[SnakemakeJob]: ...
    def finished(self, job: SnakemakeJob) -> bool: ...


def is_empty(job: SnakemakeJob) -> bool:
    """Say whether a job runs nothing, such as the target rule ``all``."""
    return bool(getattr(job, "is_norun", False))


def rule_of(job: SnakemakeJob) -> str:
    """Return the name of a job's rule."""
    return str(getattr(getattr(job, "rule", None), "name", None) or getattr(job, "name", "job"))


def wildcards_of(job: SnakemakeJob) -> Mapping[str, str]:
    """Return the wildcards of a job, by name."""
    found = getattr(job, "wildcards_dict", None)
    return {str(key): str(value) for key, value in found.items()} if isinstance(found, Mapping) else {}


def output_of(job: SnakemakeJob) -> str:
    """Return what identifies the same job in another run: its first output, else its rule and wildcards."""
    outputs = [str(path) for path in job.output]
    return min(outputs) if outputs else f"{rule_of(job)}:{sorted(wildcards_of(job).items())}"


def members_of(job: SnakemakeJob) -> list[SnakemakeJob]:
    """Return the single jobs of a group job, or the job itself."""
    found = getattr(job, "jobs", None)
    if found is None:
        return [job]
    return list(found() if callable(found) else found)
