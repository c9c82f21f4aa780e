"""slurmrestd beside a private controller: it stays in the foreground, so its process is ours to note."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

from stretto.engines.slurm.client.command import Commands, SlurmFailure, program
from stretto.engines.slurm.client.rest import RestClient, RestPlace
from stretto.engines.slurm.testbed.daemons import wait_until
from stretto.engines.slurm.testbed.ports import free_ports

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
