"""Runs a plan on Slurm: the whole graph as batch jobs with dependencies, each pinned to the node of its device.

Slurm continues while this process is away. A run is its folder: given the same folder again, the engine resumes it.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from stretto.core.cluster import Cluster
from stretto.core.plan import Plan
from stretto.engines.engine import RunOptions, RunResult, problem_of
from stretto.engines.slurm.client.client import Commands, SlurmClient, program
from stretto.engines.slurm.client.errors import SlurmMissing
from stretto.engines.slurm.engine.job_plan import JobPlan, minutes, slots_of
from stretto.engines.slurm.engine.monitor import MonitorSettings, RunMonitor
from stretto.engines.slurm.engine.run_folder import RunFolder, run_folder_for, script
from stretto.engines.slurm.engine.task_tracker import TaskTracker
from stretto.engines.work import Work


@dataclass(frozen=True)
class SlurmEngine:
    """Slurm, by its command-line programs.

    Attributes
    ----------
    conf
        The ``slurm.conf`` of the cluster; None leaves it to the environment.
    folder
        Of the run, on a file system that all nodes share. None makes one in the current directory, or resumes the
        unfinished run of the same work and plan there.
    partition, account, qos
        As ``sbatch`` has them.
    base_priority
        Added to the priorities that keep the order of ``work-conserving``; setting them needs operator rights.
    time_limit_s
        Of each job; None takes the partition's. A task's own timeout applies besides.
    poll_s, queue_s
        Seconds between reading the logs of tasks, and between asking Slurm for its queue.
    patience_s
        How long a controller may not answer before the engine gives up; the jobs continue.
    window
        Jobs in the queue at once.
    launch_s
        How long Slurm may list a job as running whose script is not, before it is requeued.
    is_resuming_nodes
        Whether to resume nodes that Slurm drained because it started a job twice, as it may after a crash of the
        controller. Needs operator rights; otherwise such nodes are only named in a warning.
    """

    conf: str | None = None
    folder: str | None = None
    partition: str | None = None
    account: str | None = None
    qos: str | None = None
    base_priority: int = 100_000
    time_limit_s: float | None = None
    poll_s: float = 0.1
    queue_s: float = 2.0
    patience_s: float = 900.0
    window: int = 1000
    launch_s: float = 60.0
    is_resuming_nodes: bool = False

    def available(self) -> str | None:
        """Return None when Slurm's programs are there and its controller answers."""
        try:
            program("sbatch")
        except SlurmMissing as error:
            return str(error)
        if self.conf is not None and not Path(self.conf).is_file():
            return f"there is no {self.conf}"
        if not self._client().ping():
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
            client = self._client(folder.lock_fd)
            # A resumed run keeps its nodes, even if they have changed since.
            slots = folder.slots or slots_of(cluster, client.nodes())
            job_plan = JobPlan.of(work, plan, problem, slots, discipline)
            scripts = [self._script(folder, job_plan, work, task, options) for task in range(len(job_plan.order))]
            folder.write_scripts(scripts, slots)
            tracker = TaskTracker(work, plan, folder, options)
            settings = self._settings()
            monitor = RunMonitor(
                tracker, job_plan, client, settings, lambda task: self._options(folder, job_plan, work, task)
            )
            return tracker.result(is_interrupted=not monitor.run())

    def _client(self, *held_fds: int) -> SlurmClient:
        return SlurmClient(Commands(Path(self.conf) if self.conf is not None else None), held_fds)

    def _settings(self) -> MonitorSettings:
        return MonitorSettings(
            self.poll_s,
            self.queue_s,
            self.patience_s,
            self.window,
            self.base_priority,
            launch_s=self.launch_s,
            is_resuming_nodes=self.is_resuming_nodes,
        )

    def _script(self, folder: RunFolder, job_plan: JobPlan, work: Work, task: int, options: RunOptions) -> str:
        return script(
            folder.path,
            task,
            work.actions[task],
            job_plan.seconds[task],
            tries=options.max_attempts,
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
