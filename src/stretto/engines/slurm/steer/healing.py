"""What a crash of the controller leaves behind in the queue, and what is done about it.

All of this was seen to happen when a controller was killed in the middle of a run. The scripts make it safe to be
brisk: whatever is started once too often leaves by itself.
"""

from __future__ import annotations

import logging
import time

from stretto.engines.slurm.client.client import SlurmClient
from stretto.engines.slurm.client.jobs import SlurmJob
from stretto.engines.slurm.engine.folder import RunFolder

_LOG = logging.getLogger(__name__)
_HELD = "requeued held"
#: A job is let go so often.
_MOST_RELEASES = 10


class Healer:
    """Looks at the jobs of a run one by one.

    Parameters
    ----------
    launch_s
        How long Slurm may call a job running before its script is at work.
    """

    def __init__(self, client: SlurmClient, folder: RunFolder, *, launch_s: float) -> None:
        self._client, self._folder, self._launch_s = client, folder, launch_s
        self._num_releases: dict[int, int] = {}
        self._locks_reach = False  # whether a running script's lock was ever seen from here
        self._keeps_order = True  # as far as we know

    def look_at_pending(self, job: SlurmJob, wanted_priority: float | None) -> None:
        """Notice a job that will not start by itself, or not in our order."""
        count = self._num_releases.get(job.job_id, 0)
        if job.reason == "DependencyNeverSatisfied":
            self._client.cancel([job.job_id])  # where Slurm leaves it to us
        elif _HELD in job.description and count < _MOST_RELEASES:
            # The node still knew the job from before a crash, and refused it.
            _LOG.info("job %d is held (%s); it is released", job.job_id, job.description)
            self._num_releases[job.job_id] = count + 1
            self._client.release(job.job_id)
        if job.reason == "BeginTime" or _HELD in job.description:
            # After a requeue, Slurm waits two minutes for the node to settle; the script settles that at once.
            self._client.update(job.job_id, starttime="now")
        is_held = job.priority == 0
        if wanted_priority is not None and job.priority != wanted_priority and not is_held and self._keeps_order:
            self._keeps_order = False
            _LOG.warning(
                "Slurm gave job %d priority %.0f in place of %.0f: setting priorities takes an operator's rights. "
                "The order within devices is Slurm's; the discipline sequence would keep the plan's",
                *(job.job_id, job.priority, wanted_priority),
            )

    def look_at_running(self, task: int, job: SlurmJob) -> None:
        """Notice a job that only Slurm believes in: the controller may wait for one that has gone."""
        if self._folder.is_locked(task):
            self._locks_reach = True
        elif self._locks_reach and time.time() - job.start_s > self._launch_s:
            _LOG.info("task %d: nobody runs job %d, which Slurm calls running; it is requeued", task, job.job_id)
            self._client.requeue(job.job_id)
