"""Virtual environments for the peers, so that their dependencies never touch ours."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
VENVS = HERE / ".venvs"


class PeerMissing(Exception):
    """A peer that cannot be installed here, with the reason."""


def find_python(version: str) -> str | None:
    """Return an interpreter of this version (``3.12``) from the path or from pyenv, or None."""
    candidates = [shutil.which(f"python{version}")]
    candidates += map(str, sorted(Path.home().glob(f".pyenv/versions/{version}*/bin/python"), reverse=True))
    for candidate in filter(None, candidates):
        # A pyenv shim exists even where no such version is active: ask it.
        asked = subprocess.run([candidate, "--version"], capture_output=True, text=True, check=False)
        if asked.returncode == 0 and re.match(rf"Python {re.escape(version)}\.", asked.stdout):
            return candidate
    return None


def peer_python(name: str, requirement: str, base: str) -> Path:
    """Return the interpreter of a venv that holds the requirement, making it on first use."""
    python = VENVS / name / "bin" / "python"
    ready = VENVS / name / "ready"
    if ready.exists() and ready.read_text() == requirement:
        return python
    shutil.rmtree(VENVS / name, ignore_errors=True)
    VENVS.mkdir(exist_ok=True)
    print(f"making {python.parent.parent.relative_to(HERE)} with {requirement} ...", file=sys.stderr)
    subprocess.run([base, "-m", "venv", str(VENVS / name)], check=True)
    made = subprocess.run(
        [str(python), "-m", "pip", "install", "--quiet", requirement], capture_output=True, text=True, check=False
    )
    if made.returncode != 0:
        said = made.stderr.splitlines()
        # What git or the compiler says is closer to the cause than pip's own summary.
        lines = [line.strip() for word in ("fatal:", "error:") for line in said if word in line.lower()]
        raise PeerMissing(f"{requirement} does not install: {(lines or ['pip failed'])[0]}")
    ready.write_text(requirement)
    return python


def run_worker(python: Path, script: str, *arguments: str, timeout_s: float) -> None:
    """Run one of the worker scripts with a fixed hash seed; raise PeerMissing with its last words."""
    environment = {**os.environ, "PYTHONHASHSEED": "0"}
    command = [str(python), str(HERE / script), *arguments]
    try:
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=timeout_s)
    except subprocess.TimeoutExpired:
        raise PeerMissing(f"{script} took longer than {timeout_s:g} s") from None
    if done.returncode != 0:
        raise PeerMissing(f"{script} failed: {(done.stderr.strip().splitlines() or ['no message'])[-1]}")
