"""Submits the jobs of a run, and compares Slurm's view of them with the logs of the tasks until all are over.

Jobs are known by their names, never by their numbers alone: a controller that crashed may have forgotten the last
seconds and hand out the same numbers again. Whatever it may have forgotten, or accepted without an answer, is settled
by asking: a job that exists is adopted, one that does not is submitted again. The scripts make sure that no task is run
twice.
"""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable, Collection
from dataclasses import dataclass
from enum import Enum

from stretto.engines.driver.events import Blame
from stretto.engines.slurm.client.client import SlurmClient, Submission
from stretto.engines.slurm.client.errors import SlurmFailure, SlurmRefused, SlurmUnreachable
from stretto.engines.slurm.client.jobs import SlurmJob
from stretto.engines.slurm.engine.job_plan import JobPlan
from stretto.engines.slurm.engine.run_folder import EXIT_TOO_EARLY, RunFolder
from stretto.engines.slurm.engine.task_tracker import OVER, TaskState, TaskTracker


@dataclass(frozen=True, kw_only=True)
class MonitorSettings:
    """How often to look, and how long to wait.

    Attributes
    ----------
    base_priority
        Added to the priorities that keep the order of ``work-conserving``; setting them needs operator rights.
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

    base_priority: int = 100_000
    poll_s: float = 0.1
    queue_s: float = 2.0
    patience_s: float = 900.0
    window: int = 1000
    launch_s: float = 60.0
    is_resuming_nodes: bool = False


#: How often one task is submitted at the most.
_MAX_SUBMISSIONS = 10
#: For so long a job may outlive its task.
_LINGER_S = 5.0


#: Ends of jobs that count as failures of their tasks.
_CHARGED: dict[str, Blame] = {"TIMEOUT": "timeout", "DEADLINE": "timeout", "OUT_OF_MEMORY": "memory"}
#: Cancellations so soon after the controller was started are attributed to its crash.
_AFTERMATH_S = 120.0


class Verdict(Enum):
    """What to do about a task whose job ended without an entry in its log."""

    AGAIN = "submit it again"
    FAILED = "give it up"


def judge(job: SlurmJob | None, *, needs_are_done: bool, restarted_s: float = math.nan) -> tuple[Verdict, Blame, str]:
    """Return what to do, the blame of the failure, and the reason.

    Parameters
    ----------
    job
        The last job of the task; None where Slurm knows none.
    needs_are_done
        Whether all tasks that it depends on have finished.
    restarted_s
        When the controller was last started, in Unix seconds.
    """
    if job is None:
        return Verdict.AGAIN, "device", "Slurm no longer knows its job"
    story = f"job {job.job_id} ended as {job.state}"
    if job.state in _CHARGED:
        return Verdict.FAILED, _CHARGED[job.state], story
    if job.exit_code == EXIT_TOO_EARLY:
        return Verdict.AGAIN, "input", f"{story}: it started before the tasks that it depends on had finished"
    # A controller that comes back from a crash cancels jobs of which it did not know that they were running.
    is_after_crash = job.submit_s <= restarted_s and job.end_s - restarted_s < _AFTERMATH_S
    is_by_slurm = is_after_crash or job.reason.startswith("Dependency")
    if job.state == "CANCELLED" and needs_are_done and not is_by_slurm:
        return Verdict.FAILED, "cancelled", f"{story}: it was cancelled from outside"
    return Verdict.AGAIN, "device", story


_LOG = logging.getLogger(__name__)
#: Why Slurm drains a node when a controller that came back has started a job once more.
_STARTED_TWICE = "Duplicate jobid"
_PAUSE_S = 5.0


class NodeMonitor:
    """Warns, once each, of nodes that accept no jobs; resumes those that a crash of the controller drained.

    That is safe for jobs of Stretto, whose scripts run a task once however often they are started.
    """

    def __init__(self, client: SlurmClient, names: Collection[str], *, is_resuming: bool) -> None:
        self._client, self._names, self._is_resuming = client, names, is_resuming
        self._warned: set[str] = set()
        self._due = time.monotonic() + _PAUSE_S

    def look(self) -> None:
        """Ask Slurm how the nodes are, every few seconds."""
        if time.monotonic() < self._due:
            return
        self._due = time.monotonic() + _PAUSE_S
        for node in self._client.nodes():
            if node.name not in self._names:
                continue
            if node.is_usable:
                self._warned.discard(node.name)
            elif self._is_resuming and _STARTED_TWICE in node.reason:
                self._resume(node.name)
            elif node.name not in self._warned:
                self._warned.add(node.name)
                _LOG.warning(
                    "node %s accepts no jobs (%s: %s); the run waits for it", node.name, node.state, node.reason
                )

    def _resume(self, name: str) -> None:
        try:
            self._client.resume_node(name)
            _LOG.info("node %s was drained because Slurm started a job twice; resumed it", name)
        except SlurmRefused as error:
            self._is_resuming = False
            _LOG.warning("node %s stays drained: %s", name, error)


_HELD = "requeued held"
#: How often a job is released.
_MOST_RELEASES = 10


class CrashRepair:
    """Repairs what a crash of the controller leaves behind in the queue; all of it was seen in real runs.

    Parameters
    ----------
    launch_s
        How long Slurm may list a job as running before its script is.
    """

    def __init__(self, client: SlurmClient, folder: RunFolder, *, launch_s: float) -> None:
        self._client, self._folder, self._launch_s = client, folder, launch_s
        self._num_releases: dict[int, int] = {}
        self._locks_reach = False  # whether a running script's lock was ever seen from here
        self._keeps_order = True  # as far as we know

    def repair_pending(self, job: SlurmJob, wanted_priority: float | None) -> None:
        """Repair a job that will not start by itself; warn where it will not start in our order."""
        count = self._num_releases.get(job.job_id, 0)
        if job.reason == "DependencyNeverSatisfied":
            self._client.cancel([job.job_id])  # where Slurm leaves it to us
        elif _HELD in job.description and count < _MOST_RELEASES:
            # The node still knew the job from before a crash, and refused it.
            _LOG.info("job %d was held (%s); released it", job.job_id, job.description)
            self._num_releases[job.job_id] = count + 1
            self._client.release(job.job_id)
        if job.reason == "BeginTime" or _HELD in job.description:
            # After a requeue, Slurm waits two minutes for the node to settle; the script settles that at once.
            self._client.update(job.job_id, starttime="now")
        is_held = job.priority == 0
        if wanted_priority is not None and job.priority != wanted_priority and not is_held and self._keeps_order:
            self._keeps_order = False
            _LOG.warning(
                "Slurm gave job %d priority %.0f instead of %.0f, because setting priorities needs operator rights. "
                "Tasks of one device therefore run in Slurm's order; --discipline sequence keeps the plan's",
                *(job.job_id, job.priority, wanted_priority),
            )

    def repair_running(self, task: int, job: SlurmJob) -> None:
        """Requeue a job that only Slurm lists as running: the controller may wait for one that has ended."""
        if self._folder.is_locked(task):
            self._locks_reach = True
        elif self._locks_reach and time.time() - job.start_s > self._launch_s:
            _LOG.info("task %d: Slurm lists job %d as running, but its script is not; requeued it", task, job.job_id)
            self._client.requeue(job.job_id)


#: A job must be missing from so many answers in a row before it counts as lost.
_NUM_MISSING = 2
#: Longest pause between two attempts to reach a controller.
_MOST_PAUSE_S = 5.0


class RunMonitor:
    """One run.

    Parameters
    ----------
    options_of
        Returns the options of ``sbatch`` for a task, without its dependencies.
    """

    def __init__(
        self,
        tracker: TaskTracker,
        job_plan: JobPlan,
        client: SlurmClient,
        settings: MonitorSettings,
        options_of: Callable[[int], dict[str, str | int | bool]],
    ) -> None:
        n = len(tracker.state)
        self.tracker, self.job_plan, self.client, self.settings = tracker, job_plan, client, settings
        self.options_of = options_of
        self.job_id = [0] * n
        self.num_submissions = [0] * n
        self._num_missing = [0] * n
        self._done_at: dict[int, float] = {}  # when a task that is done was first seen with a job left
        self._repair = CrashRepair(client, tracker.folder, launch_s=settings.launch_s)
        self._nodes = NodeMonitor(
            client, {slot.node for slot in job_plan.slots}, is_resuming=settings.is_resuming_nodes
        )
        self._is_view_fresh = False  # nothing is submitted before Slurm was asked what is there
        self._next_look = 0.0
        self._last_contact = time.monotonic()
        self._pause_s = 0.5
        self._is_stopping = False
        self._is_settled = True  # nothing has failed since failures were last dealt with

    def run(self) -> bool:
        """Follow the run to its end; return False where the user interrupted it."""
        try:
            while True:
                self._is_settled = not self.tracker.read() and self._is_settled
                if self.tracker.is_over:
                    return True
                self._talk()
                time.sleep(self.settings.poll_s)
        except KeyboardInterrupt:
            self.client.cancel(number for task, number in enumerate(self.job_id) if number and self._is_open(task))
            return False

    def _is_open(self, task: int) -> bool:
        return self.tracker.state[task] not in OVER

    def _talk(self) -> None:
        """Exchange what is due with Slurm; wait for a controller that does not answer."""
        now = time.monotonic()
        try:
            if not self._is_settled:
                self._settle_failures()
            if now >= self._next_look:
                self._look()
                self._next_look = time.monotonic() + (
                    self.settings.poll_s if self._is_stopping else self.settings.queue_s
                )
                self._last_contact, self._pause_s = time.monotonic(), 0.5
            if self._is_view_fresh and not self._is_stopping:
                self._submit()
        except SlurmUnreachable as error:
            self._is_view_fresh = False
            self._next_look = time.monotonic() + self._pause_s
            self._pause_s = min(2.0 * self._pause_s, _MOST_PAUSE_S)
            if time.monotonic() - self._last_contact > self.settings.patience_s:
                raise SlurmFailure(
                    f"{error}; run the same command again when Slurm is back: the run in"
                    f" {self.tracker.folder.path} will be resumed"
                ) from error
            _LOG.info("%s; still trying", error)

    # Slurm's queue -----------------------------------------------------------------------------

    def _look(self) -> None:
        """Compare Slurm's queue with the states of the tasks."""
        found: dict[int, list[SlurmJob]] = {}
        for job in self.client.queue():
            task = self.tracker.folder.task_of(job.name)
            if task is not None and task < len(self.job_id):
                found.setdefault(task, []).append(job)
        self.tracker.read()  # whatever ended before the answer is in the logs by now
        for task in range(len(self.job_id)):
            if self._is_open(task):
                self._compare(task, found.get(task, []))
            elif self.tracker.state[task] == TaskState.DONE:
                self._tidy(task, [job.job_id for job in found.get(task, []) if not job.is_ended])
        self._nodes.look()
        self._is_view_fresh = True
        self._settle_failures()

    def _compare(self, task: int, jobs: list[SlurmJob]) -> None:
        live = sorted((job for job in jobs if not job.is_ended), key=lambda job: job.job_id)
        if live:
            self.job_id[task], self.tracker.state[task] = live[0].job_id, TaskState.LIVE
            self._num_missing[task] = 0
            if live[0].is_pending:
                priority = self.job_plan.priority
                wanted = None if priority is None else self.settings.base_priority + priority[task]
                self._repair.repair_pending(live[0], wanted)
            elif live[0].state == "RUNNING":
                self._repair.repair_running(task, live[0])
            return
        if self.tracker.state[task] == TaskState.WAITING and not jobs:
            return
        self._num_missing[task] += 1
        ended = max(jobs, key=lambda job: job.job_id, default=None)
        if self._num_missing[task] < _NUM_MISSING and (ended is None or ended.exit_code != EXIT_TOO_EARLY):
            return  # its log may be on its way through the file system
        self._num_missing[task] = 0
        self._decide(task, ended)

    def _tidy(self, task: int, left: list[int]) -> None:
        """Cancel jobs that outlive their task, and let no job depend on them."""
        if not left:
            self._done_at.pop(task, None)
            return
        if time.monotonic() - self._done_at.setdefault(task, time.monotonic()) < _LINGER_S:
            return
        _LOG.info("task %d has finished, but Slurm still lists its job %s; cancelled it", task, left)
        self._redirect(task)
        self.client.cancel(left)

    def _decide(self, task: int, ended: SlurmJob | None) -> None:
        """Decide what to do about a task whose job ended without an entry in its log."""
        tracker = self.tracker
        if self._is_stopping:
            tracker.state[task] = TaskState.STOPPED
            return
        needs_are_done = all(tracker.state[need] == TaskState.DONE for need in self.job_plan.needs[task])
        restarted_s = (
            self.client.controller_started_s() if ended is not None and ended.state == "CANCELLED" else math.nan
        )
        verdict, blame, reason = judge(ended, needs_are_done=needs_are_done, restarted_s=restarted_s)
        if verdict is Verdict.AGAIN and self.num_submissions[task] < _MAX_SUBMISSIONS:
            _LOG.info("task %d: %s; submitting it again", task, reason)
            tracker.state[task] = TaskState.WAITING
        else:
            tracker.fail(task, blame, reason, time.time() - tracker.folder.began_s)

    def _settle_failures(self) -> None:
        """Skip what can no longer run; where a failure ends the run, cancel what waits."""
        tracker = self.tracker
        bad = (TaskState.FAILED, TaskState.SKIPPED)
        blocked = [
            task
            for task in self.job_plan.order
            if self._is_open(task) and any(tracker.state[need] in bad for need in self.job_plan.needs[task])
        ]
        if tracker.has_failed and not tracker.options.keep_going:
            if not self._is_stopping:
                self._stop()
        elif blocked:
            self.client.cancel((self.job_id[task] for task in blocked if self.job_id[task]), only_pending=True)
            tracker.skip(blocked)
            self._settle_failures()
        self._is_settled = True

    def _stop(self) -> None:
        """Start nothing more; running jobs may end."""
        waiting = [task for task in range(len(self.job_id)) if self._is_open(task)]
        self.client.cancel((self.job_id[task] for task in waiting if self.job_id[task]), only_pending=True)
        self._is_stopping = True
        self._next_look = 0.0
        for task in waiting:
            if self.tracker.state[task] == TaskState.WAITING:
                self.tracker.state[task] = TaskState.STOPPED

    # Submission --------------------------------------------------------------------------------

    def _submit(self) -> None:
        """Submit what has no job yet, in order, as far as the window reaches."""
        tracker = self.tracker
        room = self.settings.window - sum(state == TaskState.LIVE for state in tracker.state)
        for task in self.job_plan.order if TaskState.WAITING in tracker.state else ():
            if room <= 0:
                return
            if tracker.state[task] != TaskState.WAITING:
                continue
            before = (*self.job_plan.needs[task], *self.job_plan.after[task])
            if any(tracker.state[other] == TaskState.WAITING for other in before):
                continue
            self._submit_one(task)
            room -= 1

    def _submit_one(self, task: int) -> None:
        tracker = self.tracker
        self._is_view_fresh = False  # until Slurm has said that it has the job, or that it has not
        options = self.options_of(task) | {"job-name": tracker.folder.job_name(task)}
        dependency = self._dependency(task)
        if dependency:
            options["dependency"] = dependency
        self.num_submissions[task] += 1
        try:
            self.job_id[task] = self.client.submit(Submission(str(tracker.folder.script(task)), options=options))
        except SlurmRefused as error:
            if "dependency" not in str(error).lower() or self.num_submissions[task] > _MAX_SUBMISSIONS:
                raise
            # Slurm forgot what the job depends on: the next look at the queue will show it.
            raise SlurmUnreachable(str(error)) from error
        self._is_view_fresh = True
        tracker.state[task] = TaskState.LIVE
        if self.num_submissions[task] > 1:
            self._redirect(task)

    def _redirect(self, task: int) -> None:
        """Let jobs that depend on a job of this task depend on its new one."""
        for other in self.job_plan.dependents[task]:
            if self.tracker.state[other] == TaskState.LIVE and not self.tracker.is_running(other):
                self.client.update(self.job_id[other], dependency=self._dependency(other))

    def _dependency(self, task: int) -> str:
        open_needs = [self.job_id[need] for need in self.job_plan.needs[task] if self._is_open(need)]
        open_after = [self.job_id[other] for other in self.job_plan.after[task] if self._is_open(other)]
        parts = [("afterok", open_needs), ("afterany", open_after)]
        return ",".join(f"{word}:{':'.join(map(str, numbers))}" for word, numbers in parts if numbers)
