"""Output files are refused before the work when they cannot be written, not after it."""

from __future__ import annotations

import os
from pathlib import Path

from stretto.errors import InvalidInput


def check_target(path: Path | None) -> None:
    """Raise when a file cannot be written there; None is always fine."""
    if path is None:
        return
    folder = path.parent
    if not folder.is_dir():
        raise InvalidInput(f"cannot write: there is no directory {str(folder)!r}", source=str(path))
    if path.is_dir():
        raise InvalidInput("cannot write: this is a directory", source=str(path))
    if not os.access(path if path.exists() else folder, os.W_OK):
        raise InvalidInput("cannot write: permission denied", source=str(path))


def check_picture(path: Path | None) -> None:
    """Raise when a picture cannot be written there, or not of that kind."""
    if path is None:
        return
    from stretto.reports.gantt.draw import ENDINGS

    check_target(path)
    if path.suffix.lower().removeprefix(".") not in ENDINGS:
        raise InvalidInput(f"{path.suffix!r} is not one of .{', .'.join(ENDINGS)}", source=str(path))
