"""Processes that tests start and end."""

from __future__ import annotations

from pathlib import Path


def is_running(pid: int) -> bool:
    """Say whether a process runs; one that is dead and waits to be buried does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] not in "ZX"
    except OSError:
        return False
