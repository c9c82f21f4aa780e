"""What Stretto asks of Slurm, and tells it, through its own programs."""

from __future__ import annotations

import math
import re
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from stretto.engines.slurm.client.command import WAITS_NO_LONGER, Commands, SlurmFailure, SlurmRefused
from stretto.engines.slurm.client.jobs import SlurmJob, SlurmNode, parse_jobs, parse_nodes
from stretto.engines.slurm.steer.factors import SPRIO_FORMAT, Factors, parse_factors

#: Jobs of one ``scancel`` call: an argument list has an end.
_MOST_WORDS = 500


@dataclass(frozen=True)
class Submission:
    """A batch job to be.

    Attributes
    ----------
    script, words
        A file and its arguments, which Slurm hands on untouched.
    options
        Of ``sbatch``, without dashes; True for those that take no value.
    """

    script: str
    words: Sequence[str] = ()
    options: Mapping[str, str | int | bool] = field(default_factory=dict)

    def arguments(self) -> list[str]:
        """Return the argument list of ``sbatch``."""
        options = [f"--{key}" if value is True else f"--{key}={value}" for key, value in self.options.items() if value]
        return ["sbatch", "--parsable", *options, self.script, *self.words]


@dataclass(frozen=True)
class SlurmClient:
    """One Slurm, by its command-line programs.

    Attributes
    ----------
    held_fds
        Files that the programs keep open: a lock among them stays held until the last of them has ended, even
        when this process has died in the meantime.
    """

    commands: Commands = field(default_factory=Commands)
    held_fds: tuple[int, ...] = ()

    def queue(self, partition: str | None = None, *, timeout_s: float | None = None) -> list[SlurmJob]:
        """Return the jobs of a partition, or of all, that the controller still knows; ended ones among them."""
        found = parse_jobs(self._run(["squeue", "--states=all", "--json"], timeout_s))
        # 22.05 takes no notice of --partition when it writes JSON; a job may name several.
        return [job for job in found if partition is None or partition in job.partition.split(",")]

    def nodes(self) -> list[SlurmNode]:
        """Return the nodes."""
        try:
            return parse_nodes(self._run(["scontrol", "show", "nodes", "--json"]))
        except SlurmRefused as error:
            if "unrecognized option" not in str(error):
                raise
        return parse_nodes(self._run(["sinfo", "--json"]))  # scontrol writes JSON since 23.02

    def submit(self, job: Submission) -> int:
        """Submit a batch job and return its number."""
        text = self._run(job.arguments()).strip()
        number = text.splitlines()[-1].partition(";")[0] if text else ""
        if not number.isdigit():
            raise SlurmFailure(f"sbatch answered {text[:80]!r} where a job number was expected")
        return int(number)

    def cancel(self, job_ids: Iterable[int], *, only_pending: bool = False) -> None:
        """End jobs, or only those that have not begun; those that have ended are passed over."""
        numbers = [str(number) for number in job_ids]
        state = ["--state=PENDING"] if only_pending else []
        for first in range(0, len(numbers), _MOST_WORDS):
            try:
                self._run(["scancel", *state, *numbers[first : first + _MOST_WORDS]])
            except SlurmRefused as error:
                if not WAITS_NO_LONGER.search(str(error)):
                    raise

    def update(self, job: int | SlurmJob, **settings: int | str) -> bool:
        """Change a waiting job; return False where it waits no longer, or is held and cannot be changed now."""
        words = (f"{key}={value}" for key, value in settings.items())
        return self._change(["update", f"jobid={_address(job)}", *words])

    def restore_priority(self, job: int | SlurmJob) -> bool:
        """Let Slurm compute a job's priority again after somebody set it: that takes a hold and a release."""
        return self._change(["hold", _address(job)]) and self.release(job)

    def release(self, job: int | SlurmJob) -> bool:
        """Let a job that is held go on; Slurm computes its priority again, also where it was not held."""
        return self._change(["release", _address(job)])

    def requeue(self, job_id: int) -> bool:
        """Have a job start again from the queue; return False where it cannot."""
        return self._change(["requeue", str(job_id)])

    def resume_node(self, name: str) -> None:
        """Give a node that was drained back to Slurm; takes an operator's rights."""
        self._run(["scontrol", "update", f"nodename={name}", "state=resume"])

    def _change(self, words: Sequence[str]) -> bool:
        try:
            self._run(["scontrol", *words], is_change=True)
        except SlurmRefused as error:
            if WAITS_NO_LONGER.search(str(error)):
                return False
            raise
        return True

    def site_factors(self) -> dict[int, int]:
        """Return the site factor of each pending job, where the multifactor plugin is at work."""
        text = self._run(["sprio", "--noheader", "--format=%i %S"])
        found: dict[int, int] = {}
        for line in text.splitlines():
            words = line.split()
            if len(words) == 2 and words[0].isdigit() and re.fullmatch(r"-?\d+", words[1]):
                found[int(words[0])] = int(words[1])
        return found

    def factors(self) -> dict[int, Factors]:
        """Return what Slurm shows of the priorities of pending jobs; those that are held are not among them."""
        try:
            return parse_factors(self._run(["sprio", "--noheader", f"--format={SPRIO_FORMAT}"]))
        except SlurmRefused as error:
            if "supported priority plugin" not in str(error):
                raise
        # Without multifactor a priority is a number that Slurm gives once.
        return {job.job_id: Factors(None, is_set=True) for job in self.queue() if job.is_pending and not job.is_held}

    def partitions(self) -> list[str]:
        """Return the names of the partitions."""
        text = self._run(["scontrol", "--all", "--oneliner", "show", "partitions"])
        return re.findall(r"^PartitionName=(\S+)", text, re.MULTILINE)

    def setting(self, name: str) -> str:
        """Return one line of the controller's configuration."""
        text = self._run(["scontrol", "show", "config"])
        found = re.search(rf"^{re.escape(name)}\s*= *(.*)$", text, re.MULTILINE)
        return found.group(1).strip() if found else ""

    def controller_started_s(self) -> float:
        """Return when the controller was last started, in Unix seconds; NaN where it does not say."""
        try:
            # Slurm writes local time; its programs and this process have the same idea of it.
            return time.mktime(time.strptime(self.setting("BOOT_TIME"), "%Y-%m-%dT%H:%M:%S"))
        except (ValueError, OverflowError):
            return math.nan

    def ping(self) -> bool:
        """Say whether the controller answers."""
        try:
            return "UP" in self._run(["scontrol", "ping"], 5.0)
        except SlurmFailure:
            return False

    def _run(self, words: Sequence[str], timeout_s: float | None = None, *, is_change: bool = False) -> str:
        return self.commands.run(words, timeout_s=timeout_s, pass_fds=self.held_fds, is_change=is_change)


def _address(job: int | SlurmJob) -> str:
    return job.address if isinstance(job, SlurmJob) else str(job)
