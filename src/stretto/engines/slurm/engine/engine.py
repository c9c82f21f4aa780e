"""Runs a plan on Slurm: the whole graph as batch jobs with dependencies, each pinned to the node of its device.

Slurm goes on by itself while this process is away. A run is its folder: the engine that is given the same folder again
takes the run up where it is.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from stretto.core.cluster import Cluster
from stretto.core.plan import Plan
from stretto.engines.engine import RunOptions, RunResult, problem_of
from stretto.engines.slurm.client.client import SlurmClient
from stretto.engines.slurm.client.command import Commands, SlurmMissing, program
from stretto.engines.slurm.engine.board import Board
from stretto.engines.slurm.engine.chart import Chart, minutes
from stretto.engines.slurm.engine.folder import RunFolder
from stretto.engines.slurm.engine.follower import Follower
from stretto.engines.slurm.engine.pace import Pace
from stretto.engines.slurm.engine.run_place import place_of
from stretto.engines.slurm.engine.slots import slots_of
from stretto.engines.slurm.engine.task_script import script
from stretto.engines.work import Work


@dataclass(frozen=True)
class SlurmEngine:
    """Slurm, by its command-line programs.

    Attributes
    ----------
    conf
        The ``slurm.conf`` of the cluster; None leaves it to the environment.
    folder
        Of the run, on a file system that all nodes share; None makes one in the present directory, or takes up the
        unfinished run of the same work and plan that is there.
    partition, account, qos
        As ``sbatch`` has them.
    base_priority
        Added to the priorities that keep the order of ``work-conserving``; setting them takes an operator's rights.
    time_limit_s
        Of each job; None leaves it to the partition. A task with a time-out of its own has that.
    poll_s, queue_s
        Seconds between looks into the logs of the tasks, and between questions to Slurm.
    patience_s
        How long a controller may be away before the run is left to itself.
    window
        Jobs in the queue at once.
    launch_s
        How long Slurm may call a job running whose script is not at work, before it is requeued.
    is_resuming_nodes
        Whether nodes that Slurm drained because it started a job twice, as it may after a crash of the controller, are
        resumed; takes an operator's rights. Without it, they are only named in a warning.
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
            return "no Slurm controller answers; is SLURM_CONF set? (stretto testbed slurm up starts a private one)"
        return None

    def run(self, work: Work, plan: Plan, cluster: Cluster, options: RunOptions) -> RunResult:
        """Run all tasks, or go on with the run of the folder."""
        problem = problem_of(work, cluster)
        discipline = options.discipline or plan.discipline
        path = Path(self.folder) if self.folder is not None else place_of(work, plan, discipline, Path.cwd())
        with RunFolder(path) as folder:
            client = self._client(folder.lock_fd)
            # A run that is taken up again keeps its nodes, whatever has become of them in the meantime.
            slots = folder.slots or slots_of(cluster, client.nodes())
            chart = Chart.of(work, plan, problem, slots, discipline)
            scripts = [self._script(folder, chart, work, task, options) for task in range(len(chart.order))]
            folder.write_scripts(scripts, slots)
            board = Board(work, plan, folder, options)
            pace = self._pace()
            follower = Follower(board, chart, client, pace, lambda task: self._options(folder, chart, work, task))
            return board.result(is_interrupted=not follower.run())

    def _client(self, *held_fds: int) -> SlurmClient:
        return SlurmClient(Commands(Path(self.conf) if self.conf is not None else None), held_fds)

    def _pace(self) -> Pace:
        return Pace(
            self.poll_s,
            self.queue_s,
            self.patience_s,
            self.window,
            self.base_priority,
            launch_s=self.launch_s,
            is_resuming_nodes=self.is_resuming_nodes,
        )

    def _script(self, folder: RunFolder, chart: Chart, work: Work, task: int, options: RunOptions) -> str:
        return script(
            folder.path,
            task,
            work.actions[task],
            chart.seconds[task],
            tries=options.max_attempts,
            needs=chart.needs[task],
            after=chart.after[task],
        )

    def _options(self, folder: RunFolder, chart: Chart, work: Work, task: int) -> dict[str, str | int | bool]:
        """Return what ``sbatch`` is told of a task, but for its dependencies."""
        options = chart.slots[task].options()
        options |= {"output": str(folder.path / f"{task}.slurm"), "open-mode": "append", "requeue": True}
        options |= {"chdir": str(Path.cwd()), "kill-on-invalid-dep": "yes"}
        options["comment"] = f"stretto {folder.key} {work.graph.task_name(task)}"[:200]
        for name in ("partition", "account", "qos"):
            value = getattr(self, name)
            if value is not None:
                options[name] = value
        if self.time_limit_s is not None:
            options["time"] = minutes(self.time_limit_s)
        if chart.priority is not None:
            options["priority"] = self.base_priority + chart.priority[task]
        return options
