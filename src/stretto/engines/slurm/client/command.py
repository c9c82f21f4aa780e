"""Calls of Slurm's programs: argument lists, never a shell, and always with a time limit.

Clients of a dead controller hang for minutes; here they are unreachable after seconds.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from stretto.errors import EngineFailure

#: What the programs say when it is not their caller's fault.
_AWAY = re.compile(
    r"unable to contact|connect(ion|ed)?\b|socket|timed out|in standby|zero bytes|slurm_\w*(msg|persist)"
    r"|temporarily un(available|able)|munge|communication",
    re.IGNORECASE,
)


#: What Slurm says of jobs that cannot be changed any more, or whose priority cannot be set while they are held.
WAITS_NO_LONGER = re.compile(
    r"invalid job id|finished|completed|not pending|no longer pending|disabled|in held state", re.IGNORECASE
)


class SlurmFailure(EngineFailure):
    """Slurm did not do what it was asked to."""


class SlurmUnreachable(SlurmFailure):
    """The controller gave no answer; whether it did what it was asked to is not known."""


class SlurmRefused(SlurmFailure):
    """The controller answered, and said no."""


class SlurmMissing(SlurmFailure):
    """The programs of Slurm are not installed."""


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
        complaint = " ".join((done.stderr or done.stdout).split())[:500] or f"exit code {done.returncode}"
        raise (SlurmUnreachable if _AWAY.search(complaint) else SlurmRefused)(f"{words[0]}: {complaint}")

    def environment(self) -> dict[str, str]:
        """Return the environment of the programs: ours, with their configuration."""
        # Lists of array tasks are cut after 64 letters unless told otherwise.
        settings = dict(os.environ, LC_ALL="C", SLURM_BITSTR_LEN="0")
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
