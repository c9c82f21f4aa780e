"""How Stretto starts another Python: the words of its command line, and its environment.

``python -m`` and ``python -c`` look for modules in the current folder first, and every Python looks in ``PYTHONPATH``.
A folder that somebody else filled could so bring its own ``numpy.py`` or ``stretto/web/worker.py`` into a child that
works for us. All children are therefore started here: with ``-P``, and with a ``PYTHONPATH`` that we have set.
"""

from __future__ import annotations

import os
import shlex
import site
import sys
import sysconfig
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

#: Folders that children look into besides what is installed: for libraries that are found through PYTHONPATH only.
EXTRA_FOLDERS = "STRETTO_PYTHONPATH"
#: Keeps what the user had set, for the commands of the user's tasks.
_OUTER = "STRETTO_OUTER_"
_ISOLATING = ("PYTHONPATH", "PYTHONSAFEPATH")


def python_words(*arguments: str) -> list[str]:
    """Return the command line of a Python that does not look for modules in the current folder."""
    return [sys.executable, "-P", *arguments]


def python_environment(folders: Sequence[str] = ()) -> dict[str, str]:
    """Return the environment of a child Python, without the ``PYTHONPATH`` that we were started with.

    Parameters
    ----------
    folders
        Where the child looks for modules besides what is installed. Only a child that calls functions of the user
        needs any (:func:`module_folders`).
    """
    return _isolated(dict(os.environ), folders)


def module_folders() -> list[str]:
    """Return the folders in which this process finds modules, apart from those of the interpreter."""
    known = _installed_folders()
    found = [os.path.abspath(entry) for entry in sys.path]
    return [folder for folder in dict.fromkeys(found) if folder not in known]


@contextmanager
def isolated_starts() -> Iterator[None]:
    """Have libraries that start Python by themselves (multiprocessing, Dask) start it isolated, too.

    They pass the environment of this process on, so it is this that changes, for as long as the context lasts.
    """
    before = {name: os.environ.get(name) for name in (*_ISOLATING, *(_OUTER + name for name in _ISOLATING))}
    inner = _isolated(dict(os.environ), ())
    inner["PYTHONSAFEPATH"] = "1"
    try:
        for name in before:
            _set(name, inner.get(name))
        yield
    finally:
        for name, value in before.items():
            _set(name, value)


def outer_environment() -> dict[str, str]:
    """Return the environment as the user had it, also in a child that was started isolated."""
    found = dict(os.environ)
    for name in _ISOLATING:
        if _OUTER + name in found:
            value = found.pop(_OUTER + name)
            found.pop(name, None)
            if value:
                found[name] = value
    return found


def shell_lines(folders: Sequence[str] = ()) -> str:
    """Return what a shell script has to say before it starts a Python: the same, in a job of a batch system."""
    own = os.pathsep.join(_own_folders(folders))
    keep = f'export {_OUTER}PYTHONPATH="${{PYTHONPATH:-}}"\n'
    return keep + (f"export PYTHONPATH={shlex.quote(own)}\n" if own else "unset PYTHONPATH\n")


def _isolated(env: dict[str, str], folders: Sequence[str]) -> dict[str, str]:
    for name in _ISOLATING:
        env.setdefault(_OUTER + name, env.get(name, ""))
        env.pop(name, None)
    own = _own_folders(folders, env)
    if own:
        env["PYTHONPATH"] = os.pathsep.join(own)
    return env


def _own_folders(folders: Sequence[str], env: Mapping[str, str] = os.environ) -> list[str]:
    """Return the folders that a child is told of: those asked for, and where this Stretto itself lies."""
    home = str(Path(__file__).resolve().parents[3])  # the folder that holds the package
    extra = [entry for entry in env.get(EXTRA_FOLDERS, "").split(os.pathsep) if os.path.isabs(entry)]
    return list(dict.fromkeys([*folders, *extra, *([] if home in _installed_folders() else [home])]))


def _installed_folders() -> set[str]:
    """Return the folders that every Python of this installation looks into."""
    paths = sysconfig.get_paths()
    standard = [paths[name] for name in ("stdlib", "platstdlib", "purelib", "platlib")]
    zipped = [entry for entry in sys.path if entry.endswith(".zip")]
    dynamic = os.path.join(paths["stdlib"], "lib-dynload")
    scripts = str(Path(sys.executable).parent)  # the first entry of a console script
    return {*standard, *zipped, dynamic, scripts, *site.getsitepackages(), site.getusersitepackages()}


def _set(name: str, value: str | None) -> None:
    if value is None:
        os.environ.pop(name, None)
    else:
        os.environ[name] = value
