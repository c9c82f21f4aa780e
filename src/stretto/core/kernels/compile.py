"""Where compiled kernels are kept on disk: numba's own cache, with a stamp that sees callees.

numba looks only at the file that defines a function, so a change in one kernel would leave stale
code in its callers. Here a kernel's folder is named after its own source and all kernel
sources that it imports, so just what depends on a change is compiled again
(docs/decisions/0004-kernel-cache.md). Every kernel takes its ``njit`` from this module.
"""

from __future__ import annotations

import functools
import hashlib
import os
import re
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numba
from numba import njit
from numba.core import caching, event

from stretto.core.host.private_files import make_private_folder

__all__ = ["is_compiling", "njit"]

#: The package. A kernel is a module below a folder ``kernels``, or called so; its name is its dotted path from here.
_PACKAGE = Path(__file__).resolve().parents[2]
_IMPORT = re.compile(r"^from stretto\.([\w.]+) import (\([^)]*\)|.*)$", re.MULTILINE)
_KEPT = 6  # versions of a module that stay on disk


def imported_kernels(source: str) -> set[str]:
    """Return the kernel modules, and modules of parameters, that a kernel's source may import.

    That is what is named after *from*, and below it.
    """
    found: set[str] = set()
    for module, names in _IMPORT.findall(source):
        if "kernels" in module.split(".") or module.endswith(".parameters"):
            below = re.findall(r"\w+", re.sub(r"\bas\s+\w+", "", names))
            found.update([module, *(f"{module}.{name}" for name in below)])
    return found


@functools.cache
def closure_digest(module: str, folder: Path = _PACKAGE) -> str:
    """Return a hash over a kernel module and everything that it imports, near and far."""
    seen: dict[str, bytes] = {}
    open_modules = [module]
    while open_modules:
        name = open_modules.pop()
        path = folder / f"{name.replace('.', '/')}.py"
        if name not in seen and path.exists():
            seen[name] = path.read_bytes()
            open_modules.extend(imported_kernels(seen[name].decode()))
    digest = hashlib.sha256(f"{sys.version} {numba.__version__}".encode())
    for name in sorted(seen):
        digest.update(f"{name} {len(seen[name])} ".encode() + seen[name])
    return digest.hexdigest()[:16]


def cache_root() -> Path:
    """Return the folder below which compiled kernels are kept."""
    chosen = os.environ.get("NUMBA_CACHE_DIR")
    if chosen:
        return Path(chosen)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "stretto" / "kernels"


@functools.cache
def cache_folder(module: str) -> Path:
    """Make and return a kernel module's folder; forget all but its newest versions."""
    root = cache_root()
    folder = root / f"{module}-{closure_digest(module)}"
    if not os.environ.get("NUMBA_CACHE_DIR"):
        make_private_folder(root)  # who can write here can run code as this user
    folder.mkdir(parents=True, exist_ok=True)
    os.utime(folder)
    versions = [path for path in root.glob(f"{module}-*") if path.name[: -len("-0123456789abcdef")] == module]
    others = [path for path in versions if path != folder]
    for old in sorted(others, key=lambda path: path.stat().st_mtime, reverse=True)[_KEPT - 1 :]:
        shutil.rmtree(old, ignore_errors=True)
    return folder


class KernelLocator(caching._CacheLocator):  # type: ignore[misc]
    """Tells numba where a kernel's compiled code is; leaves other people's functions alone."""

    def __init__(self, function: Callable[..., Any], folder: Path) -> None:
        self._line = function.__code__.co_firstlineno
        self._folder = folder

    @classmethod
    def from_function(cls, py_func: Callable[..., Any], py_file: str) -> KernelLocator | None:
        path = Path(py_file).resolve()
        if not path.is_relative_to(_PACKAGE):
            return None
        parts = path.relative_to(_PACKAGE).with_suffix("").parts
        if "kernels" not in parts:
            return None
        try:
            locator = cls(py_func, cache_folder(".".join(parts)))
            locator.ensure_cache_path()
        except (OSError, RuntimeError):  # no home, or not writable: numba tries its own places
            return None
        return locator

    def get_cache_path(self) -> str:
        return str(self._folder)

    def get_source_stamp(self) -> str:
        return self._folder.name

    def get_disambiguator(self) -> str:
        return str(self._line)


_load_index = caching.IndexDataCacheFile._load_index


def load_index(cache: caching.IndexDataCacheFile) -> dict[Any, Any]:
    """Return what is compiled, nothing where the index names a tuple that has been renamed or moved since."""
    try:
        found: dict[Any, Any] = _load_index(cache)
    except (AttributeError, ImportError):
        return {}
    return found


class CompilingListener(event.Listener):  # type: ignore[misc]
    """Counts the kernels that are being compiled now: a kernel's callees are compiled inside it."""

    def __init__(self) -> None:
        self.depth = 0

    def on_start(self, event: event.Event) -> None:
        self.depth += 1

    def on_end(self, event: event.Event) -> None:
        self.depth -= 1


_compiling = CompilingListener()


def is_compiling() -> bool:
    """Say whether a kernel is being compiled; one that is read from disk is not."""
    return _compiling.depth > 0


event.register("numba:compile", _compiling)
caching.CacheImpl._locator_classes.insert(0, KernelLocator)
caching.IndexDataCacheFile._load_index = load_index
