"""Processes that put themselves in the background: known by pid files, ended by pid, never by name."""

from __future__ import annotations

import contextlib
import json
import os
import random
import signal
import socket
import subprocess
from collections.abc import Iterable, Iterator
from pathlib import Path

import psutil

from stretto.engines.background import wait_until
from stretto.engines.slurm.client.client import Commands, program
from stretto.engines.slurm.client.errors import SlurmFailure
from stretto.engines.slurm.client.rest import RestClient, RestPlace
from stretto.errors import StrettoError


def pid_in(path: Path, program: str) -> int | None:
    """Return the process of a pid file, or None where it has gone or its number belongs to another program."""
    try:
        pid = int(path.read_text().strip())
    except (OSError, ValueError):
        return None
    return pid if pid > 1 and is_program(pid, program) else None


def is_program(pid: int, program: str) -> bool:
    """Say whether a process is alive and runs this program."""
    try:
        process = psutil.Process(pid)
        return bool(process.name() == program and process.status() != psutil.STATUS_ZOMBIE)
    except psutil.Error:
        return False


def job_processes(conf: Path) -> Iterator[int]:
    """Find the job steps and jobs of one Slurm: their environment names its configuration and a job.

    A shell in which somebody merely exported ``SLURM_CONF`` is none of them.
    """
    ours = f"SLURM_CONF={conf}".encode()
    for pid in psutil.pids():
        with contextlib.suppress(OSError):
            # By hand: slurmstepd overwrites the beginning of its environment, where psutil stops reading.
            settings = Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
            is_job = any(setting.startswith(b"SLURM_JOB_ID=") for setting in settings)
            if pid != os.getpid() and ours in settings and (is_job or is_program(pid, "slurmstepd")):
                yield pid


def end(pids: Iterable[int], *, patience_s: float) -> list[int]:
    """Terminate processes, kill those that stay, and return those that are still there."""
    found = []
    for pid in pids:
        with contextlib.suppress(psutil.Error):
            found.append(psutil.Process(pid))
    _send(found, signal.SIGTERM)
    _, left = psutil.wait_procs(found, patience_s)
    _send(left, signal.SIGKILL)
    _, left = psutil.wait_procs(left, 5.0)
    return [process.pid for process in left if process.is_running() and process.status() != psutil.STATUS_ZOMBIE]


def _send(processes: Iterable[psutil.Process], number: signal.Signals) -> None:
    for process in processes:
        with contextlib.suppress(psutil.Error):
            process.send_signal(number)


#: Below the range from which the kernel draws ports for outgoing connections: those come and go, and a daemon
#: that is started again must find its port free.
_FIRST, _LAST = 20_000, 32_000


def free_ports(count: int) -> list[int]:
    """Return ports of the loopback that are free now, in random places: several testbeds may start at once."""
    candidates = random.SystemRandom().sample(range(_FIRST, _LAST), _LAST - _FIRST)
    found: list[int] = []
    for port in candidates:
        if len(found) == count:
            return found
        if _is_free(port):
            found.append(port)
    raise StrettoError(f"there are no {count} free ports between {_FIRST} and {_LAST}")


def _is_free(port: int) -> bool:
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as trial:
        try:
            trial.bind(("", port))  # daemons listen on all addresses
        except OSError:
            return False
    return True


PROGRAM = "slurmrestd"
_TOKEN_S = 86_400


def start_rest(folder: Path, commands: Commands, version: tuple[int, int], *, timeout_s: float) -> RestPlace:
    """Start it on a free port, write a token for ourselves, and return where both are."""
    (port,) = free_ports(1)
    token = folder / "run" / "token"
    place = RestPlace(f"http://127.0.0.1:{port}", str(token))
    token.touch(0o600)
    token.write_text(commands.run(["scontrol", "token", f"lifespan={_TOKEN_S}"]))
    settings = commands.environment()
    settings |= {
        "SLURM_JWT": "daemon",
        # It would not run as the controller's user, and here there is no other; nor does a container let it unshare.
        "SLURMRESTD_SECURITY": "disable_user_check,disable_unshare_sysv,disable_unshare_files",
    }
    with (folder / "log" / f"{PROGRAM}.log").open("wb") as log:
        process = subprocess.Popen(
            [program(PROGRAM), "-s", _interface(version), "-a", "rest_auth/jwt", f"127.0.0.1:{port}"],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            env=settings,
            cwd=folder,
            start_new_session=True,
        )
    (folder / "run" / f"{PROGRAM}.pid").write_text(f"{process.pid}\n")

    def answers() -> bool:
        if process.poll() is not None:
            raise SlurmFailure(f"slurmrestd ended with code {process.returncode}; see {folder / 'log'}")
        try:
            return bool(RestClient(place).nodes())
        except SlurmFailure:
            return False

    if not wait_until(answers, timeout_s=timeout_s, pause_s=0.1):
        raise SlurmFailure(f"slurmrestd did not answer within {timeout_s:g} s; see {folder / 'log'}")
    (folder / "run" / "rest.json").write_text(json.dumps(vars(place)))
    return place


def is_rest_installed() -> str | None:
    """Return None when slurmrestd and its tokens are there, or what is missing."""
    try:
        program(PROGRAM)
    except SlurmFailure:
        return "slurmrestd is not installed: apt-get install slurmrestd slurm-wlm-jwt-plugin"
    folders = [Path(top) / "slurm-wlm" for top in ("/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu")]
    places = [*folders, Path("/usr/lib64/slurm"), Path("/usr/lib/slurm"), Path("/usr/local/lib/slurm")]
    if not any(os.path.exists(place / "auth_jwt.so") for place in places):
        return "Slurm's plugin for tokens is not installed: apt-get install slurm-wlm-jwt-plugin"
    return None


def _interface(version: tuple[int, int]) -> str:
    """Return the plugin without the database: older daemons die when there is none."""
    if version >= (23, 11):
        return "openapi/slurmctld"
    return "openapi/v0.0.39" if version >= (23, 2) else "openapi/v0.0.38"
