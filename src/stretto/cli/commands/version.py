"""``stretto version``: which release this is, and on what it runs."""

from __future__ import annotations

import platform
from importlib.metadata import PackageNotFoundError
from importlib.metadata import version as installed_version

from stretto import __version__
from stretto.cli.console import Output, print_json
from stretto.cli.options import OutputOption

_LIBRARIES = ("numpy", "numba", "ortools")


def version(output: OutputOption = Output.TABLE) -> None:
    """Print the versions of Stretto and its libraries."""
    if output is Output.QUIET:
        print(__version__)
        return
    found = {"stretto": __version__, "python": platform.python_version()} | {
        library: _version_of(library) for library in _LIBRARIES
    }
    if output is Output.JSON:
        print_json(found)
    else:
        print(f"stretto {__version__} ({', '.join(f'{k} {v}' for k, v in found.items() if k != 'stretto')})")


def _version_of(library: str) -> str:
    try:
        return installed_version(library)
    except PackageNotFoundError:
        return "missing"
