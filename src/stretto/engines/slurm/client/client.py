"""What Stretto asks of Slurm, and tells it, through its own programs."""

from __future__ import annotations

import math
import os
import re
import shutil
import subprocess
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from stretto.core.host.safe_text import shown_on_one_line
from stretto.core.units import is_count
from stretto.engines.slurm.client.errors import (
    WAITS_NO_LONGER,
    SlurmFailure,
    SlurmMissing,
    SlurmRefused,
    SlurmUnreachable,
)
from stretto.engines.slurm.client.jobs import (
    FAR_DAYS,
    SPRIO_FORMAT,
    Factors,
    SlurmJob,
    SlurmNode,
    parse_factors,
    parse_jobs,
    parse_nodes,
)

#: What the programs say when it is not their caller's fault.
_AWAY = re.compile(
    r"unable to contact|connect(ion|ed)?\b|socket|timed out|in standby|zero bytes|slurm_\w*(msg|persist)"
    r"|temporarily un(available|able)|munge|communication",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class Commands:
    """How to call the programs of one Slurm.

    Attributes
    ----------
    conf
        Its ``slurm.conf``; None leaves it to the environment.
    """

    conf: Path | None = None
    timeout_s: float = 20.0

    def run(
        self,
        words: Sequence[str],
        *,
        timeout_s: float | None = None,
        pass_fds: Sequence[int] = (),
        text: str = "",
        is_change: bool = False,
    ) -> str:
        """Run a program and return what it printed; raise with what it complained about.

        Parameters
        ----------
        is_change
            Slurm is told something: Ctrl-C does not cut that off, because Slurm might act on it later.
        """
        path = program(words[0])
        limit = self.timeout_s if timeout_s is None else timeout_s
        try:
            process = subprocess.Popen(
                [path, *words[1:]],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
                errors="replace",
                env=self.environment(),
                pass_fds=tuple(pass_fds),
                start_new_session=is_change,  # out of reach of the terminal's Ctrl-C
            )
            done = _ended(process, text, limit, is_change=is_change)
        except subprocess.TimeoutExpired:
            raise SlurmUnreachable(f"{words[0]} gave no answer within {limit:g} s") from None
        if done.returncode == 0:
            return done.stdout
        complaint = (
            shown_on_one_line(" ".join((done.stderr or done.stdout).split())[:500]) or f"exit code {done.returncode}"
        )
        if "establish a configuration source" in complaint:
            raise SlurmUnreachable(
                f"{words[0]} found no configuration of Slurm: set SLURM_CONF, or start a private Slurm with"
                "  stretto testbed slurm up"
            )
        raise (SlurmUnreachable if _AWAY.search(complaint) else SlurmRefused)(f"{words[0]}: {complaint}")

    def environment(self) -> dict[str, str]:
        """Return the environment of the programs: ours, with their configuration."""
        # Lists of array tasks are cut after 64 letters unless told otherwise.
        settings = dict(os.environ, LC_ALL="C", SLURM_BITSTR_LEN="0", SLURM_TIME_FORMAT="standard")
        # Options of an enclosing job must not become those of the jobs we submit.
        for name in [name for name in settings if name.startswith(("SBATCH_", "SLURM_JOB", "SLURM_STEP"))]:
            del settings[name]
        if self.conf is not None:
            settings["SLURM_CONF"] = str(self.conf)
        return settings


def _ended(
    process: subprocess.Popen[str], text: str, limit_s: float, *, is_change: bool
) -> subprocess.CompletedProcess[str]:
    """Wait for a program; where Slurm is told something, also when Ctrl-C comes in between (once)."""
    with process:
        try:
            output, complaint = process.communicate(text, timeout=limit_s)
        except BaseException as error:
            try:
                if is_change and isinstance(error, KeyboardInterrupt):
                    process.wait(limit_s)
            finally:
                process.kill()
            raise
    return subprocess.CompletedProcess(process.args, process.returncode, output, complaint)


def program(name: str) -> str:
    """Return the path of a program; daemons live where ordinary users do not look."""
    found = shutil.which(name, path=os.pathsep.join([os.environ.get("PATH", os.defpath), "/usr/sbin", "/sbin"]))
    if found is None:
        raise SlurmMissing(f"{name} is not installed; on Debian: apt-get install slurmctld slurmd slurm-client munge")
    return found


def is_installed() -> bool:
    """Say whether a private Slurm can be started here."""
    try:
        return all(program(name) for name in ("slurmctld", "slurmd", "sbatch", "squeue", "munged"))
    except SlurmMissing:
        return False


_FAR = [f"StartTime=now+{FAR_DAYS}days"]
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

    @staticmethod
    def of(conf: str | None, *held_fds: int) -> SlurmClient:
        """Return the client of the Slurm with this ``slurm.conf``; None leaves it to the environment."""
        return SlurmClient(Commands(Path(conf) if conf is not None else None), held_fds)

    def queue(self, partition: str | None = None, *, timeout_s: float | None = None) -> list[SlurmJob]:
        """Return the jobs of a partition, or of all, that the controller still knows; ended ones among them."""
        found = parse_jobs(self._run(["squeue", "--states=all", "--json"], timeout_s))
        # 22.05 takes no notice of --partition when it writes JSON; a job may name several.
        return [job for job in found if job.is_in(partition)]

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
        if not is_count(number):
            raise SlurmFailure(f"sbatch printed {text[:80]!r} instead of a job number")
        return int(number)

    def cancel(self, job_ids: Iterable[int], *, only_pending: bool = False) -> None:
        """Cancel jobs, or only those that have not started; ended ones are ignored."""
        numbers = [str(number) for number in job_ids]
        state = ["--state=PENDING"] if only_pending else []
        for first in range(0, len(numbers), _MOST_WORDS):
            try:
                self._run(["scancel", *state, *numbers[first : first + _MOST_WORDS]])
            except SlurmRefused as error:
                if not WAITS_NO_LONGER.search(str(error)):
                    raise

    def update(self, job: int | SlurmJob, **settings: int | str) -> bool:
        """Change a waiting job; return False where it no longer waits, or is held and cannot be changed now."""
        words = (f"{key}={value}" for key, value in settings.items())
        return self._change(["update", f"jobid={_address(job)}", *words])

    def restore_priority(self, job: int | SlurmJob) -> bool:
        """Let Slurm compute a job's priority again after it was set: that takes a hold and a release."""
        return self._change(["hold", _address(job)]) and self.release(job)

    def release(self, job: int | SlurmJob) -> bool:
        """Release a held job; Slurm computes its priority again, also where it was not held."""
        return self._change(["release", _address(job)])

    def requeue(self, job_id: int) -> bool:
        """Have a job start again from the queue; return False where it cannot."""
        return self._change(["requeue", str(job_id)])

    def resume_node(self, name: str) -> None:
        """Resume a drained node; needs operator rights."""
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
            if len(words) == 2 and is_count(words[0]) and is_count(words[1].removeprefix("-")):
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

    def reservations(self) -> dict[str, tuple[str, float]]:
        """Return the start of each reservation: as Slurm writes it, and in Unix seconds."""
        text = self._run(["scontrol", "--all", "--oneliner", "show", "reservation"])
        found = re.findall(r"^ReservationName=(\S+) StartTime=(\S+)", text, re.MULTILINE)
        return {name: (start, _unix_s(start)) for name, start in found}

    def reserve(self, name: str) -> None:
        """Make a reservation far in the future that keeps nothing from anybody; needs operator rights."""
        words = [f"ReservationName={name}", *_FAR, "Duration=1", "Users=root", "Nodes=ALL", "Flags=OVERLAP,IGNORE_JOBS"]
        self._run(["scontrol", "create", "reservation", *words], is_change=True)

    def renew_reservation(self, name: str) -> bool:
        """Move a reservation to as far from now as it was when it was made; return False where it is gone."""
        return self._change(["update", f"ReservationName={name}", *_FAR])

    def unreserve(self, name: str) -> bool:
        """Delete a reservation; return False where it is gone."""
        return self._change(["delete", f"ReservationName={name}"])

    def partitions(self) -> list[str]:
        """Return the names of the partitions."""
        text = self._run(["scontrol", "--all", "--oneliner", "show", "partitions"])
        return [shown_on_one_line(name) for name in re.findall(r"^PartitionName=(\S+)", text, re.MULTILINE)]

    def setting(self, name: str) -> str:
        """Return one line of the controller's configuration."""
        text = self._run(["scontrol", "show", "config"])
        found = re.search(rf"^{re.escape(name)}\s*= *(.*)$", text, re.MULTILINE)
        return shown_on_one_line(found.group(1).strip()) if found else ""

    def controller_started_s(self) -> float:
        """Return when the controller was last started, in Unix seconds; NaN where it does not say."""
        return _unix_s(self.setting("BOOT_TIME"))

    def ping(self) -> bool:
        """Say whether the controller answers."""
        try:
            return "UP" in self._run(["scontrol", "ping"], 5.0)
        except SlurmFailure:
            return False

    def _run(self, words: Sequence[str], timeout_s: float | None = None, *, is_change: bool = False) -> str:
        return self.commands.run(words, timeout_s=timeout_s, pass_fds=self.held_fds, is_change=is_change)


def _unix_s(text: str) -> float:
    """Read a time of Slurm's programs, which is local: they and this process have the same idea of that."""
    try:
        return time.mktime(time.strptime(text, "%Y-%m-%dT%H:%M:%S"))
    except (ValueError, OverflowError):
        return math.nan


def _address(job: int | SlurmJob) -> str:
    return job.address if isinstance(job, SlurmJob) else str(job)


class QueueClient(Protocol):
    """Looks at a queue and changes waiting jobs; by Slurm's programs (client.py) or over HTTP (rest.py)."""

    def queue(self, partition: str | None = None) -> list[SlurmJob]:
        """Return the jobs of a partition, or of all."""
        ...

    def nodes(self) -> list[SlurmNode]:
        """Return the nodes."""
        ...

    def partitions(self) -> list[str]:
        """Return the names of the partitions."""
        ...

    def factors(self) -> Mapping[int, Factors] | None:
        """Return what the priorities of pending jobs are made of; None where that cannot be read."""
        ...

    def update(self, job: int | SlurmJob, **settings: int | str) -> bool:
        """Change a waiting job; return False where it no longer waits, or is held and cannot be changed now."""
        ...

    def release(self, job: int | SlurmJob) -> bool:
        """Release a held job; Slurm computes its priority again, also where it was not held."""
        ...

    def restore_priority(self, job: int | SlurmJob) -> bool:
        """Let Slurm compute a job's priority again, by a hold and a release."""
        ...
