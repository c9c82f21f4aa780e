"""Jobs and graphs of Snakemake that hold what its interface for schedulers names."""

from __future__ import annotations

from collections.abc import Iterable, Mapping


class PlainRule:
    def __init__(self, name: str) -> None:
        self.name = name


class PlainJob:
    """A job with a rule, wildcards, files and needs."""

    def __init__(
        self,
        rule: str,
        wildcards: Mapping[str, str] | None = None,
        *,
        needs: Mapping[str, int] | None = None,
        priority: int = 0,
        output: str | None = None,
    ) -> None:
        self.rule, self.wildcards_dict, self.priority = PlainRule(rule), dict(wildcards or {}), priority
        self.input: list[str] = []
        self.output = [output or "_".join([rule, *self.wildcards_dict.values()])]
        self.benchmark = None
        self.num_asked = 0
        self._needs = {"_cores": 1, "_job_count": 1, **(needs or {})}

    @property
    def scheduler_resources(self) -> dict[str, int]:
        self.num_asked += 1
        return self._needs

    def __repr__(self) -> str:
        return self.output[0]


class PlainGroup:
    """A job that runs several others."""

    def __init__(self, jobs: Iterable[PlainJob]) -> None:
        self.jobs = list(jobs)
        self.priority, self.input, self.output = 0, [], []
        self.scheduler_resources = {"_cores": 1, "_job_count": 1}


class PlainDag:
    """Jobs with their parents; a job is ready when its parents are done."""

    def __init__(self, parents: Mapping[PlainJob, Iterable[PlainJob]]) -> None:
        self.parents = {job: list(others) for job, others in parents.items()}
        self.done: set[PlainJob] = set()
        self.started: set[PlainJob] = set()

    def needrun_jobs(self) -> Iterable[PlainJob]:
        return [job for job in self.parents if job not in self.done]

    def job_dependencies(self, job: PlainJob) -> Iterable[PlainJob]:
        return self.parents[job]

    def finished(self, job: PlainJob) -> bool:
        return job in self.done

    def ready(self) -> set[PlainJob]:
        return {
            job
            for job, others in self.parents.items()
            if job not in self.started and all(other in self.done for other in others)
        }
