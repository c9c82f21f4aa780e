"""A simulated Slurm behind its command-line programs: it answers late, loses answers, restarts and forgets.

It also knows the truth that steering is held to: what each job would have without a steering layer.
"""

from __future__ import annotations

import dataclasses
import json
import math
import random
import subprocess
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from stretto.engines.slurm.client.jobs import FAR_DAYS
from stretto.engines.slurm.steer.tags import tag_of

from .clock import EPOCH_S, Scheduler, VirtualProcess

#: Priority that Slurm computes, before site factors.
_COMPUTED = 4_000_000
PARTITIONS = ["main", "long"]
_AWAY = "slurm_update error: Unable to contact slurm controller (connect failure)"


@dataclass
class VirtualJob:
    """A job as Slurm keeps it.

    Attributes
    ----------
    own_site, own_priority, own_hold
        What others than the steering layer have set; a priority of None is computed.
    site, priority
        What it has now.
    is_raced
        Somebody changed it between a look of the steering layer and what it told then: nobody can order those two.
    is_forgotten
        Slurm has restarted from a state in which it had a label that was removed since.
    """

    number: int
    submit_s: float
    cpus: int
    limit_min: int
    run_s: float
    partition: str = "main"
    own_site: int = 0
    own_priority: int | None = None
    own_hold: bool = False
    site: int = 0
    priority: int | None = None
    is_held: bool = False
    state: str = "PENDING"
    start_s: float = math.nan
    end_s: float = math.nan
    changed_s: float = -1.0
    seen_s: float = 0.0  # when its parts of the priority were last shown
    held_s: float = -1.0  # when a user held it last
    is_raced: bool = False
    is_forgotten: bool = False
    past_own: list[int | None] = field(default_factory=list)
    own_comment: str = ""  # of administrators
    comment: str = ""

    @property
    def is_ended(self) -> bool:
        return self.state in ("COMPLETED", "CANCELLED")

    @property
    def shown_priority(self) -> int:
        if self.is_held:
            return 0
        return self.priority if self.priority is not None else max(1, _COMPUTED + self.site - self.number)


class ResourceManager:
    """The controller."""

    def __init__(self, clock: Scheduler, seed: int, *, num_cpus: int, mode: str) -> None:
        self.clock, self.num_cpus, self.mode = clock, num_cpus, mode
        self.jobs: dict[int, VirtualJob] = {}
        self.stuck_until_s = self.away_until_s = self.blind_until_s = -1.0
        self.lost_answers = 0  # how many of the next answers are lost
        self.broken_answers = 0  # how many of the next answers are cut off
        self.looked_s: dict[int, float] = {}  # when each process last got an answer about priorities
        self.listed_s: dict[int, float] = {}  # and a list of the queue
        self.delayed: list[Command] = []  # requests that came while the controller was stuck, the first first
        self.num_faults = 0  # commands that failed by a fault
        self.releases_recompute = True
        self.rights = "all"  # of the steering layer
        self.reservations: dict[str, str] = {}  # their starts, by name
        self.beats: dict[str, float] = {}  # when each reservation was last made or moved
        self.num_restarts = 0
        self._saved: list[tuple[float, dict[int, VirtualJob], dict[str, str]]] = []
        self._next = 1
        self._rng = random.Random(f"slurm {seed}")

    # Users and time ----------------------------------------------------------------------------------------

    def submit(
        self, cpus: int, limit_min: int, run_s: float, partition: str, site: int = 0, priority: int | None = None
    ) -> VirtualJob:
        cpus = min(cpus, self.num_cpus)
        job = VirtualJob(self._next, self.clock.now_s, cpus, limit_min, run_s, partition, site, priority)
        job.site, job.priority = site, priority
        if job.number % 3 == 0:
            job.own_comment = job.comment = "moved from rack 7 [see ticket]"
        job.past_own.append(self.own_value(job))
        self.jobs[job.number] = job
        self._next += 1
        return job

    def own_value(self, job: VirtualJob) -> int | None:
        return job.own_site if self.mode == "sitefactor" else job.own_priority

    def value(self, job: VirtualJob) -> int | None:
        return job.site if self.mode == "sitefactor" else job.priority

    def cancel(self, job: VirtualJob) -> None:
        if not job.is_ended:
            job.state, job.end_s = "CANCELLED", self.clock.now_s

    def hold(self, job: VirtualJob) -> None:
        """Hold a waiting job: a priority that was set is lost."""
        if job.state == "PENDING":
            # Held by the steerer, or marked as such because it was about to: nobody can tell whose hold it is.
            tag = tag_of(job.comment)
            is_marked = tag is not None and tag.is_holding
            job.is_raced = job.is_raced or is_marked or (job.is_held and not job.own_hold)
            job.is_held = job.own_hold = True
            job.held_s = self.clock.now_s
            job.priority = job.own_priority = None
            job.past_own.append(self.own_value(job))

    def release(self, job: VirtualJob) -> None:
        job.is_held = job.own_hold = False

    def set_by_operator(self, job: VirtualJob, value: int) -> None:
        """Have an operator set the number that is steered by."""
        if job.is_ended or job.is_held:
            return
        if self.mode == "sitefactor":
            job.own_site = job.site = value
        elif job.state == "PENDING":
            job.own_priority = job.priority = value
        job.changed_s = self.clock.now_s
        job.past_own.append(self.own_value(job))

    def tick(self) -> None:
        """End and start jobs, and save the state now and then."""
        now = self.clock.now_s
        for job in self.jobs.values():
            if job.state == "RUNNING" and now >= job.start_s + job.run_s:
                job.state, job.end_s = "COMPLETED", now
        for number in [one.number for one in self.jobs.values() if one.is_ended and now > one.end_s + 300.0]:
            del self.jobs[number]
        free = self.num_cpus - sum(job.cpus for job in self.jobs.values() if job.state == "RUNNING")
        waiting = [job for job in self.jobs.values() if job.state == "PENDING" and not job.is_held]
        for job in sorted(waiting, key=lambda one: (-one.shown_priority, one.number)):
            if job.cpus > free:
                break
            free -= job.cpus
            job.state, job.start_s = "RUNNING", now
        if not self._saved or now >= self._saved[-1][0] + 2.0:
            self._saved = [*self._saved[-3:], (now, _copied(self.jobs), dict(self.reservations))]

    def restart(self) -> None:
        """Come back with the state that was saved last: later changes, jobs and reservations are forgotten."""
        if self._saved:
            self.num_restarts += 1
            self.reservations = dict(self._saved[-1][2])
            before, self.jobs = self.jobs, _copied(self._saved[-1][1])
            for number, job in self.jobs.items():
                # A label that was removed and is back: whoever removed it may have ended. So may a job that had ended,
                # whose label only a file knew. Nothing is promised then.
                was = before.get(number)
                if was is None or self.value(job) == self.own_value(job):
                    continue
                is_back = was.is_ended and not job.is_ended and self.rights == "no comments"
                if is_back or self.value(was) == self.own_value(was):
                    job.is_forgotten = True
            self.clock.tell(f"Slurm has forgotten the last {self.clock.now_s - self._saved[-1][0]:.1f} s")

    # Programs ------------------------------------------------------------------------------------------------

    def answer(self, words: Sequence[str], process: VirtualProcess | None) -> tuple[int, str, str]:
        """Do what a program asks, and return its exit code and what it prints."""
        if self.clock.now_s < self.away_until_s:
            self.num_faults += 1
            return self._away(words)
        code, text, complaint = self._do(words, process)
        if self.lost_answers > 0:
            self.lost_answers -= 1
            self.num_faults += 1
            return 1, "", "slurm_receive_msg: Zero Bytes were transmitted or received"
        if self.broken_answers > 0 and text.startswith("{"):
            self.broken_answers -= 1
            self.num_faults += 1
            text = text[: len(text) // 2]
        return code, text, complaint

    def _away(self, words: Sequence[str]) -> tuple[int, str, str]:
        if words[0] == "squeue" and self._rng.random() < 0.5:  # as 22.05 does
            return 0, json.dumps({"errors": [{"error": "Unable to contact slurm controller"}], "jobs": []}), ""
        return 1, "", _AWAY

    def _do(self, words: Sequence[str], process: VirtualProcess | None) -> tuple[int, str, str]:
        if words[0] == "squeue":
            if process is not None:
                self.listed_s[process.pid] = self.clock.now_s
            return 0, json.dumps({"jobs": [self._shown(job) for job in self.jobs.values()], "errors": []}), ""
        if words[0] == "sprio":
            if process is not None:
                self.looked_s[process.pid] = self.clock.now_s
            return 0, self._priorities(), ""
        words = [word for word in words if not word.startswith("--")]
        if words[:2] == ["scontrol", "show"]:
            if "reservation" in words:
                return 0, self._reservations(), ""
            if "config" in words:
                return 0, "PriorityType            = priority/multifactor\n", ""
            if "partitions" in words:
                return 0, "PartitionName=main AllowGroups=ALL\nPartitionName=long AllowGroups=ALL\n", ""
            node = {
                "name": "n1",
                "cpus": self.num_cpus,
                "real_memory": 1000,
                "state": ["IDLE"],
                "partitions": PARTITIONS,
            }
            return 0, json.dumps({"nodes": [node], "errors": []}), ""
        if words[0] == "scontrol" and any(word.startswith("ReservationName=") for word in words):
            return self._change_reservation(words)
        if words[0] == "scontrol" and words[1] in ("update", "hold", "release"):
            return self._change(words, process)
        return 1, "", f"invalid entity: {' '.join(words)}"

    def _change(self, words: Sequence[str], process: VirtualProcess | None) -> tuple[int, str, str]:
        number = int(words[2].removeprefix("jobid="))
        job = self.jobs.get(number)
        if job is None or job.is_ended:
            return 1, "", f"slurm_update error: Invalid job id specified (job {number})"
        if words[1] == "hold":
            if job.state == "PENDING":
                job.is_held, job.priority = True, None
            return 0, "", ""
        if words[1] == "release":
            if job.is_held or self.releases_recompute:
                listed_s = self.listed_s.get(process.pid, -1.0) if process is not None else -1.0
                if job.own_hold and job.held_s >= listed_s:
                    job.is_raced = True
                elif not job.own_hold:
                    self._note_race(job, process)
                job.is_held, job.priority = False, None
            return 0, "", ""
        changes = dict(word.split("=", 1) for word in words[3:])
        if "admincomment" in changes and self.rights == "no comments":
            return 1, "", "slurm_update error: Access/permission denied"
        if "priority" in changes:
            if job.state != "PENDING":
                return 1, "", "slurm_update error: Job is no longer pending execution"
            if job.is_held:
                return 1, "", "slurm_update error: Job is in held state"
        if "admincomment" in changes:
            job.comment = changes.pop("admincomment")
        if changes:
            self._set(job, changes, process)
        return 0, "", ""

    def _set(self, job: VirtualJob, changes: dict[str, str], process: VirtualProcess | None) -> None:
        self._note_race(job, process)
        for name, text in changes.items():
            setattr(job, {"sitefactor": "site", "priority": "priority"}[name], int(text))

    def _note_race(self, job: VirtualJob, process: VirtualProcess | None) -> None:
        """Note that a program changes a job of which it has not seen what somebody set lately."""
        looked_s = self.looked_s.get(process.pid, -1.0) if process is not None else -1.0
        is_shown = job.state == "PENDING" and not job.is_held
        if job.changed_s >= (min(looked_s, job.seen_s) if is_shown else 0.0):
            job.is_raced = True

    def _change_reservation(self, words: Sequence[str]) -> tuple[int, str, str]:
        name = next(word for word in words if word.startswith("ReservationName=")).partition("=")[2]
        if self.rights == "no reservations":
            return 1, "", "Error creating the reservation: Access/permission denied"
        if words[1] == "create" and name in self.reservations:
            return 1, "", "Error creating the reservation: Duplicate reservation name"
        if words[1] != "create" and name not in self.reservations:
            return 1, "", "slurm_update error: Requested reservation is invalid"
        if words[1] == "delete":
            del self.reservations[name]
        else:
            self.beats[name] = self.clock.now_s
            start_s = EPOCH_S + self.clock.now_s + self.clock.jump_s + FAR_DAYS * 86400.0
            self.reservations[name] = time.strftime("%Y-%m-%dT%H:%M:%S", time.localtime(start_s))
        return 0, "", ""

    def _reservations(self) -> str:
        rows = [f"ReservationName={name} StartTime={start} State=INACTIVE" for name, start in self.reservations.items()]
        return "\n".join(rows) or "No reservations in the system"

    def _shown(self, job: VirtualJob) -> dict[str, Any]:
        def moment(seconds: float) -> int:
            return 0 if math.isnan(seconds) else int(EPOCH_S + seconds)

        return {
            "job_id": job.number,
            "name": f"job-{job.number}",
            "user_name": f"user{job.number % 3}",
            "job_state": [job.state],
            "state_reason": "JobHeldUser" if job.is_held else "Priority",
            "partition": job.partition,
            "submit_time": moment(job.submit_s),
            "eligible_time": moment(job.submit_s),
            "start_time": moment(job.start_s),
            "end_time": moment(job.end_s),
            "time_limit": {"set": True, "infinite": False, "number": job.limit_min},
            "cpus": {"set": True, "infinite": False, "number": job.cpus},
            "node_count": 1,
            "shared": [],
            "priority": {"set": True, "infinite": False, "number": job.shown_priority},
            "exit_code": 0,
            "admin_comment": job.comment,
        }

    def _priorities(self) -> str:
        rows = []
        for job in self.jobs.values():
            if job.state != "PENDING" or job.is_held or self.clock.now_s < self.blind_until_s:
                continue
            job.seen_s = self.clock.now_s
            age = 0 if job.priority is not None else 5
            site = 0 if job.priority is not None else job.site
            rows.append(f"{job.number}|{site}|{job.shown_priority}|{age}|0|0|0|0|0|0|0")
        return "\n".join(rows)


def _copied(jobs: dict[int, VirtualJob]) -> dict[int, VirtualJob]:
    return {number: dataclasses.replace(job, past_own=[*job.past_own]) for number, job in jobs.items()}


class Command:
    """A program of Slurm, as ``subprocess.Popen``; its request reaches the controller whatever becomes of us."""

    def __init__(self, world: Any, words: list[str], *, pass_fds: Sequence[int] = (), **settings: Any) -> None:
        self.args, self.returncode = words, 0
        self._clock: Scheduler = world.clock
        self._manager: ResourceManager = world.manager
        self._clock.op(f"the start of {' '.join(words[:3])}")
        self._process = self._clock.process
        self._pipes: list[Any] = [world.pipes[handle] for handle in pass_fds]
        for pipe in self._pipes:
            pipe.num_programs += 1
        self._answer: tuple[int, str, str] | None = None
        self._arrive_s = self._clock.now_s + world.latency_s()
        self._clock.at(self._arrive_s, self._arrive)

    def _arrive(self) -> None:
        if self._answer is not None:
            return
        if self._clock.now_s < self._manager.stuck_until_s:  # in the order in which they came
            if self not in self._manager.delayed:
                self._manager.delayed.append(self)
            self._clock.at(self._manager.stuck_until_s + 1e-6 * self._arrive_s, self._arrive)
            return
        for earlier in self._manager.delayed[:]:
            if earlier is not self and earlier._arrive_s <= self._arrive_s:
                self._manager.delayed.remove(earlier)
                earlier._arrive()
        self._answer = self._manager.answer(self.args, self._process)
        self._release()

    def _release(self) -> None:
        while self._pipes:
            self._pipes.pop().num_programs -= 1

    def communicate(self, text: str = "", timeout: float | None = None) -> tuple[str, str]:
        if not self._clock.wait(lambda: self._answer is not None, timeout):
            self._manager.num_faults += 1
            raise subprocess.TimeoutExpired(self.args, timeout or 0.0)
        self._clock.op(f"the answer to {' '.join(self.args[:3])}")
        assert self._answer is not None
        self.returncode, output, complaint = self._answer
        return output, complaint

    def wait(self, timeout: float | None = None) -> int:
        self._clock.wait(lambda: self._answer is not None, timeout)
        return self.returncode

    def kill(self) -> None:
        self._release()

    def __enter__(self) -> Command:
        return self

    def __exit__(self, *error: object) -> None:
        pass
