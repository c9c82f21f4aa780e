"""Submits the jobs of a run, and keeps Slurm's view of them and ours together until all is over.

Jobs are known by their names, never by their numbers alone: a controller that crashed may have forgotten the last
seconds and hand the same numbers out again. What it may have forgotten, or accepted without our hearing of it, is
settled by asking: a job that is there is adopted, one that is not is submitted again. The scripts see to it that no
task is done twice.
"""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable

from stretto.engines.slurm.client.client import SlurmClient, Submission
from stretto.engines.slurm.client.command import SlurmFailure, SlurmRefused, SlurmUnreachable
from stretto.engines.slurm.client.jobs import SlurmJob
from stretto.engines.slurm.engine.board import OVER, Board, State
from stretto.engines.slurm.engine.chart import Chart
from stretto.engines.slurm.engine.node_watch import NodeWatch
from stretto.engines.slurm.engine.pace import Pace
from stretto.engines.slurm.engine.task_script import EXIT_TOO_EARLY
from stretto.engines.slurm.engine.verdict import Verdict, judge
from stretto.engines.slurm.steer.healing import Healer

_LOG = logging.getLogger(__name__)
#: A job must be missing from so many answers in a row before it counts as lost.
_NUM_MISSING = 2
#: Longest pause between two attempts to reach a controller.
_MOST_PAUSE_S = 5.0


class Follower:
    """One run.

    Parameters
    ----------
    options_of
        Returns the options of ``sbatch`` for a task, without its dependencies.
    """

    def __init__(
        self,
        board: Board,
        chart: Chart,
        client: SlurmClient,
        pace: Pace,
        options_of: Callable[[int], dict[str, str | int | bool]],
    ) -> None:
        n = len(board.state)
        self.board, self.chart, self.client, self.pace = board, chart, client, pace
        self.options_of = options_of
        self.job_id = [0] * n
        self.num_submissions = [0] * n
        self._num_missing = [0] * n
        self._done_at: dict[int, float] = {}  # when a task that is done was first seen with a job left
        self._healer = Healer(client, board.folder, launch_s=pace.launch_s)
        self._nodes = NodeWatch(client, {slot.node for slot in chart.slots}, is_resuming=pace.is_resuming_nodes)
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
                self._is_settled = not self.board.read() and self._is_settled
                if self.board.is_over:
                    return True
                self._talk()
                time.sleep(self.pace.logs_s)
        except KeyboardInterrupt:
            self.client.cancel(number for task, number in enumerate(self.job_id) if number and self._is_open(task))
            return False

    def _is_open(self, task: int) -> bool:
        return self.board.state[task] not in OVER

    def _talk(self) -> None:
        """Ask and tell Slurm what there is to ask and tell; a controller that is away is waited for."""
        now = time.monotonic()
        try:
            if not self._is_settled:
                self._settle_failures()
            if now >= self._next_look:
                self._look()
                self._next_look = time.monotonic() + (self.pace.logs_s if self._is_stopping else self.pace.queue_s)
                self._last_contact, self._pause_s = time.monotonic(), 0.5
            if self._is_view_fresh and not self._is_stopping:
                self._submit()
        except SlurmUnreachable as error:
            self._is_view_fresh = False
            self._next_look = time.monotonic() + self._pause_s
            self._pause_s = min(2.0 * self._pause_s, _MOST_PAUSE_S)
            if time.monotonic() - self._last_contact > self.pace.patience_s:
                raise SlurmFailure(
                    f"{error}; the run in {self.board.folder.path} can be taken up again when Slurm is back"
                ) from error
            _LOG.info("%s; the run goes on", error)

    # What Slurm says -----------------------------------------------------------------------------

    def _look(self) -> None:
        """Compare what Slurm knows with what we believe."""
        found: dict[int, list[SlurmJob]] = {}
        for job in self.client.queue():
            task = self.board.folder.task_of(job.name)
            if task is not None and task < len(self.job_id):
                found.setdefault(task, []).append(job)
        self.board.read()  # whatever ended before the answer is in the logs by now
        for task in range(len(self.job_id)):
            if self._is_open(task):
                self._compare(task, found.get(task, []))
            elif self.board.state[task] == State.DONE:
                self._tidy(task, [job.job_id for job in found.get(task, []) if not job.is_ended])
        self._nodes.look()
        self._is_view_fresh = True
        self._settle_failures()

    def _compare(self, task: int, jobs: list[SlurmJob]) -> None:
        live = sorted((job for job in jobs if not job.is_ended), key=lambda job: job.job_id)
        if live:
            self.job_id[task], self.board.state[task] = live[0].job_id, State.LIVE
            self._num_missing[task] = 0
            if live[0].is_pending:
                priority = self.chart.priority
                wanted = None if priority is None else self.pace.base_priority + priority[task]
                self._healer.look_at_pending(live[0], wanted)
            elif live[0].state == "RUNNING":
                self._healer.look_at_running(task, live[0])
            return
        if self.board.state[task] == State.WAITING and not jobs:
            return
        self._num_missing[task] += 1
        ended = max(jobs, key=lambda job: job.job_id, default=None)
        if self._num_missing[task] < _NUM_MISSING and (ended is None or ended.exit_code != EXIT_TOO_EARLY):
            return  # its log may be on its way through the file system
        self._num_missing[task] = 0
        self._decide(task, ended)

    def _tidy(self, task: int, left: list[int]) -> None:
        """End jobs that outlive their task, and let nobody wait for them."""
        if not left:
            self._done_at.pop(task, None)
            return
        if time.monotonic() - self._done_at.setdefault(task, time.monotonic()) < self.pace.linger_s:
            return
        _LOG.info("task %d is done; its job %s is not, by Slurm's account, and is cancelled", task, left)
        self._redirect(task)
        self.client.cancel(left)

    def _decide(self, task: int, ended: SlurmJob | None) -> None:
        """Decide what to do about a task whose job has gone without a word in its log."""
        board = self.board
        if self._is_stopping:
            board.state[task] = State.STOPPED
            return
        needs_are_done = all(board.state[need] == State.DONE for need in self.chart.needs[task])
        restarted_s = (
            self.client.controller_started_s() if ended is not None and ended.state == "CANCELLED" else math.nan
        )
        verdict, blame, reason = judge(ended, needs_are_done=needs_are_done, restarted_s=restarted_s)
        if verdict is Verdict.AGAIN and self.num_submissions[task] < self.pace.max_submissions:
            _LOG.info("task %d: %s; it is submitted again", task, reason)
            board.state[task] = State.WAITING
        else:
            board.fail(task, blame, reason, time.time() - board.folder.began_s)

    def _settle_failures(self) -> None:
        """Skip what can no longer run; where a failure ends the run, cancel what waits."""
        board = self.board
        bad = (State.FAILED, State.SKIPPED)
        hopeless = [
            task
            for task in self.chart.order
            if self._is_open(task) and any(board.state[need] in bad for need in self.chart.needs[task])
        ]
        if board.has_failed and not board.options.keep_going:
            if not self._is_stopping:
                self._stop()
        elif hopeless:
            self.client.cancel((self.job_id[task] for task in hopeless if self.job_id[task]), only_pending=True)
            board.skip(hopeless)
            self._settle_failures()
        self._is_settled = True

    def _stop(self) -> None:
        """Let nothing more begin; what runs may end."""
        waiting = [task for task in range(len(self.job_id)) if self._is_open(task)]
        self.client.cancel((self.job_id[task] for task in waiting if self.job_id[task]), only_pending=True)
        self._is_stopping = True
        self._next_look = 0.0
        for task in waiting:
            if self.board.state[task] == State.WAITING:
                self.board.state[task] = State.STOPPED

    # What we tell it -----------------------------------------------------------------------------

    def _submit(self) -> None:
        """Submit what has no job yet, in order, as far as the window reaches."""
        board = self.board
        room = self.pace.window - sum(state == State.LIVE for state in board.state)
        for task in self.chart.order if State.WAITING in board.state else ():
            if room <= 0:
                return
            if board.state[task] != State.WAITING:
                continue
            before = (*self.chart.needs[task], *self.chart.after[task])
            if any(board.state[other] == State.WAITING for other in before):
                continue
            self._submit_one(task)
            room -= 1

    def _submit_one(self, task: int) -> None:
        board = self.board
        self._is_view_fresh = False  # until Slurm has said that it has the job, or that it has not
        options = self.options_of(task) | {"job-name": board.folder.job_name(task)}
        dependency = self._dependency(task)
        if dependency:
            options["dependency"] = dependency
        self.num_submissions[task] += 1
        try:
            self.job_id[task] = self.client.submit(Submission(str(board.folder.script(task)), options=options))
        except SlurmRefused as error:
            if "dependency" not in str(error).lower() or self.num_submissions[task] > self.pace.max_submissions:
                raise
            # What it depends on was forgotten in a crash: we shall find that out when we look.
            raise SlurmUnreachable(str(error)) from error
        self._is_view_fresh = True
        board.state[task] = State.LIVE
        if self.num_submissions[task] > 1:
            self._redirect(task)

    def _redirect(self, task: int) -> None:
        """Let those that wait for a job of this task wait for its new one."""
        for other in self.chart.dependents[task]:
            if self.board.state[other] == State.LIVE and not self.board.is_running(other):
                self.client.update(self.job_id[other], dependency=self._dependency(other))

    def _dependency(self, task: int) -> str:
        open_needs = [self.job_id[need] for need in self.chart.needs[task] if self._is_open(need)]
        open_after = [self.job_id[other] for other in self.chart.after[task] if self._is_open(other)]
        parts = [("afterok", open_needs), ("afterany", open_after)]
        return ",".join(f"{word}:{':'.join(map(str, numbers))}" for word, numbers in parts if numbers)
