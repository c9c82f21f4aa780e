"""Compiled loops: arrays in, arrays out; no exceptions, strings or dicts inside.

Compiled code is kept on disk. numba checks only the file of the function itself, not those it
calls, so a change in one kernel would leave stale code in its callers: the folder is
therefore named after all kernel sources (docs/decisions/0004-kernel-cache.md).
"""

from __future__ import annotations

import hashlib
import os
import shutil
import sys
from pathlib import Path

_KEPT = 3  # folders of earlier versions that stay


def _cache_folder() -> Path:
    """Return the cache folder for these very sources."""
    digest = hashlib.sha256(sys.version.encode())
    for source in sorted(Path(__file__).parent.glob("*.py")):
        stat = source.stat()
        digest.update(f"{source}:{stat.st_size}:{stat.st_mtime_ns}".encode())
    root = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "stretto" / "kernels"
    return root / digest.hexdigest()[:16]


def _use_cache() -> None:
    """Point numba at the folder, unless the user chose one or it cannot be written."""
    if "NUMBA_CACHE_DIR" in os.environ or "numba" in sys.modules:
        return
    try:
        folder = _cache_folder()
        folder.mkdir(parents=True, exist_ok=True)
        os.utime(folder)
        if not os.access(folder, os.W_OK):
            return
        others = sorted(folder.parent.iterdir(), key=lambda path: path.stat().st_mtime, reverse=True)
        for old in others[_KEPT:]:
            shutil.rmtree(old, ignore_errors=True)
    except (OSError, RuntimeError):
        return
    os.environ["NUMBA_CACHE_DIR"] = str(folder)


_use_cache()
