"""What ``stretto doctor`` looks at: plain facts, and no exception for a fault that is looked for."""

from __future__ import annotations

import os
import platform
import re
from importlib import metadata
from pathlib import Path
from typing import Any

#: Extras that serve those who work on Stretto itself.
_OWN_EXTRAS = ("all", "dev", "docs")
_REQUIREMENT = re.compile(r"^([A-Za-z0-9_.-]+).*?;.*extra == ['\"]([A-Za-z0-9_.-]+)['\"]")
_LIBRARIES = ("numpy", "numba", "llvmlite", "scipy", "ortools", "matplotlib", "typer", "rich")


def version_of(distribution: str) -> str | None:
    """Return the installed version, or None."""
    try:
        return metadata.version(distribution)
    except metadata.PackageNotFoundError:
        return None


def versions() -> dict[str, str | None]:
    """Return the versions of what Stretto stands on."""
    from stretto import __version__

    own = {"stretto": __version__, "python": platform.python_version(), "system": platform.platform(terse=True)}
    return own | {library: version_of(library) for library in _LIBRARIES}


def machine() -> dict[str, int | None]:
    """Return cores and memory."""
    usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return {"cores": os.cpu_count(), "usable_cores": usable, "memory_bytes": _memory_bytes()}


def _memory_bytes() -> int | None:
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        return None


def kernel_cache() -> dict[str, Any]:
    """Return where compiled kernels are kept, whether that can be written, and what is there."""
    from stretto.core.kernels.compile import cache_root

    root = cache_root()
    sizes = [entry.stat().st_size for entry in root.glob("*/*") if entry.is_file()]
    existing = next(folder for folder in (root, *root.parents) if folder.exists())
    return {
        "path": str(root),
        "writable": os.access(existing, os.W_OK),
        "num_modules": sum(1 for entry in root.glob("*") if entry.is_dir() and any(entry.iterdir())),
        "size_bytes": sum(sizes),
    }


def extras() -> list[dict[str, Any]]:
    """Return the optional parts, what each lacks, and the command that installs it."""
    needs: dict[str, list[str]] = {}
    for requirement in metadata.requires("stretto") or ():
        found = _REQUIREMENT.match(requirement)
        if found and found.group(2) not in _OWN_EXTRAS and found.group(1) != "stretto":
            needs.setdefault(found.group(2), []).append(found.group(1))
    entries = []
    for extra, libraries in sorted(needs.items()):
        missing = [library for library in libraries if version_of(library) is None]
        entries.append(
            {
                "name": extra,
                "present": not missing,
                "missing": missing,
                "versions": {library: version_of(library) for library in libraries if library not in missing},
                "install": f"pip install 'stretto[{extra}]'" if missing else None,
            }
        )
    return entries


def engines() -> list[dict[str, Any]]:
    """Return the engines, and for each why it cannot run here, or None."""
    from stretto import catalog, registry

    table: dict[str, str] = getattr(catalog, "ENGINES", {})
    entries = []
    for name in registry.known("engine", table):
        try:
            reason: str | None = registry.construct("engine", name, table, {}).available()
        except Exception as error:  # a library that is there but broken must not keep us from telling the rest
            reason = f"{type(error).__name__}: {error}"
        entries.append({"name": name, "available": reason is None, "reason": reason})
    return entries


def plugins() -> list[dict[str, str]]:
    """Return what other distributions add, and where it comes from."""
    from stretto import registry

    return [
        {"kind": kind, "name": name, "target": target}
        for kind in registry.GROUPS
        for name, target in registry.plugins(kind).items()
    ]


def data_folder() -> dict[str, Any]:
    """Return the folder of real traces, where one is named."""
    chosen = os.environ.get("STRETTO_DATA")
    return {"path": chosen, "exists": bool(chosen) and Path(str(chosen)).is_dir()}


def run_log() -> dict[str, Any]:
    """Return where the run log is and whether it can be read."""
    import sqlite3

    from stretto.errors import StrettoError
    from stretto.runlog import RunLog
    from stretto.runlog.place import default_path

    path = default_path()
    found: dict[str, Any] = {"path": str(path), "exists": path.exists(), "num_runs": 0, "size_bytes": 0, "fault": None}
    if not path.exists():
        return found
    found["size_bytes"] = path.stat().st_size
    try:
        with RunLog.open(path, is_read_only=True) as log:
            found["num_runs"] = len(log.runs(limit=10**9))
    except (StrettoError, sqlite3.Error, ValueError) as error:
        found["fault"] = str(error)
    return found


def settings(commands: dict[str, Any]) -> dict[str, Any]:
    """Return the files of settings that exist, and what is wrong with them, or None."""
    from stretto.cli.configured import settings_of
    from stretto.config import config_files
    from stretto.errors import StrettoError

    try:
        settings_of(commands)
        fault = None
    except StrettoError as error:
        fault = str(error)
    return {"files": [str(path.absolute()) for path in config_files() if path.exists()], "fault": fault}
