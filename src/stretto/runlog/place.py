"""Where the run log lives unless the user says otherwise."""

from __future__ import annotations

import os
from pathlib import Path

FILE_NAME = "runs.db"


def default_path() -> Path:
    """Return ``$STRETTO_HOME``'s log, or the one in the user's state directory."""
    home = os.environ.get("STRETTO_HOME")
    if home:
        return Path(home) / FILE_NAME
    state = os.environ.get("XDG_STATE_HOME")
    base = Path(state) if state else Path.home() / ".local" / "state"
    return base / "stretto" / FILE_NAME


def output_folder(log_path: Path, run_id: str) -> Path:
    """Return the folder of the output of a run's commands: ``TASK_NUMBER.ATTEMPT.out`` and ``.err``."""
    return log_path.with_name(f"{log_path.name}-output") / run_id
