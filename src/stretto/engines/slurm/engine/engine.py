"""Runs a plan on Slurm: the whole graph as batch jobs with dependencies, each pinned to the node of its device.

Slurm continues while this process is away. A run is its folder: given the same folder again, the engine resumes it.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from stretto.core.cluster import Cluster
from stretto.core.plan import Plan
from stretto.engines.engine import RunOptions, RunResult, problem_of
from stretto.engines.slurm.client.client import SlurmClient, program
from stretto.engines.slurm.client.errors import SlurmMissing
from stretto.engines.slurm.engine.access import SlurmAccess
from stretto.engines.slurm.engine.job_plan import JobPlan, minutes, slots_of
from stretto.engines.slurm.engine.monitor import MonitorSettings, RunMonitor
from stretto.engines.slurm.engine.run_folder import RunFolder, run_folder_for, script
from stretto.engines.slurm.engine.task_tracker import TaskTracker
from stretto.engines.work import Work


@dataclass(frozen=True)
class SlurmEngine(SlurmAccess, MonitorSettings):
    """Slurm, by its command-line programs.

    Further parameters are those of :class:`~stretto.engines.slurm.engine.access.SlurmAccess` and, for watching a run,
    of :class:`~stretto.engines.slurm.engine.monitor.MonitorSettings`.

    Attributes
    ----------
    folder
        Of the run, on a file system that all nodes share. None makes one in the current directory, or resumes the
        unfinished run of the same work and plan there.
    account, qos
        As ``sbatch`` has them.
    time_limit_s
        Of each job; None takes the partition's. A task's own timeout applies besides.
    """

    account: str | None = None
    qos: str | None = None
    time_limit_s: float | None = None

    def available(self) -> str | None:
        """Return None when Slurm's programs are there and its controller answers."""
        try:
            program("sbatch")
        except SlurmMissing as error:
            return str(error)
        if self.conf is not None and not Path(self.conf).is_file():
            return f"there is no {self.conf}"
        if not SlurmClient.of(self.conf).ping():
            return (
                "no Slurm controller answers; set SLURM_CONF, or start a private Slurm with: stretto testbed slurm up"
            )
        return None

    def run(self, work: Work, plan: Plan, cluster: Cluster, options: RunOptions) -> RunResult:
        """Run all tasks, or resume the run of the folder."""
        problem = problem_of(work, cluster)
        discipline = options.discipline or plan.discipline
        path = Path(self.folder) if self.folder is not None else run_folder_for(work, plan, discipline, Path.cwd())
        with RunFolder(path) as folder:
            client = SlurmClient.of(self.conf, folder.lock_fd)
            # A resumed run keeps its nodes, even if they have changed since.
            slots = folder.slots or slots_of(cluster, client.nodes())
            job_plan = JobPlan.of(work, plan, problem, slots, discipline)
            scripts = [self._script(folder, job_plan, work, task, options) for task in range(len(job_plan.order))]
            folder.write_scripts(scripts, slots)
            tracker = TaskTracker(work, plan, folder, options)
            monitor = RunMonitor(
                tracker, job_plan, client, self, lambda task: self._options(folder, job_plan, work, task)
            )
            return tracker.result(is_interrupted=not monitor.run())

    def _script(self, folder: RunFolder, job_plan: JobPlan, work: Work, task: int, options: RunOptions) -> str:
        return script(
            folder.path,
            task,
            work.actions[task],
            job_plan.seconds[task],
            tries=work.task_attempts.get(task, options.max_attempts),
            needs=job_plan.needs[task],
            after=job_plan.after[task],
        )

    def _options(self, folder: RunFolder, job_plan: JobPlan, work: Work, task: int) -> dict[str, str | int | bool]:
        """Return what ``sbatch`` is told of a task, but for its dependencies."""
        options = job_plan.slots[task].options()
        options |= {"output": str(folder.path / f"{task}.slurm"), "open-mode": "append", "requeue": True}
        options |= {"chdir": str(Path.cwd()), "kill-on-invalid-dep": "yes"}
        options["comment"] = f"stretto {folder.key} {work.graph.task_name(task)}"[:200]
        for name in ("partition", "account", "qos"):
            value = getattr(self, name)
            if value is not None:
                options[name] = value
        if self.time_limit_s is not None:
            options["time"] = minutes(self.time_limit_s)
        if job_plan.priority is not None:
            options["priority"] = self.base_priority + job_plan.priority[task]
        return options
