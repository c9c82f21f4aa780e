"""Settings from files and the environment: defaults of options, below what is typed.

From weak to strong: what is built in, the user's file, ``stretto.toml`` in the current folder, the environment.
In a file, ``[defaults]`` speaks to every command and ``[plan]`` to one; in the environment these are
``STRETTO_SEED`` and ``STRETTO_PLAN_SEED``.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from stretto.errors import InvalidInput, UnknownName

#: Options that may be set outside the command line. None of them names a file to write, a program or an address:
#: a ``stretto.toml`` comes along with other people's folders, and must not be able to do harm.
CONFIGURABLE = frozenset(
    {
        *("backfill", "budget", "cluster", "contention", "discipline", "estimates", "noise", "output"),
        *("policies", "policy", "pool_rule", "seed", "seeds", "strategy", "time_limit"),
    }
)
DEFAULTS = "defaults"
PROJECT_FILE = "stretto.toml"
_MAX_BYTES = 2**20


@dataclass(frozen=True)
class ConfigValue:
    """A value and where it came from."""

    value: str | int | float | bool
    source: str


def user_file() -> Path:
    """Return the user's own file: ``$STRETTO_CONFIG``, or ``stretto/config.toml`` where settings are kept."""
    chosen = os.environ.get("STRETTO_CONFIG")
    if chosen:
        return Path(chosen)
    return Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config") / "stretto" / "config.toml"


def config_files() -> list[Path]:
    """Return the files that may hold settings, the weaker first; they need not exist."""
    return [user_file(), Path(PROJECT_FILE)]


def read_settings(commands: Mapping[str, frozenset[str]]) -> dict[str, dict[str, ConfigValue]]:
    """Return for each command what is set outside the command line.

    Parameters
    ----------
    commands
        The configurable options of each command.
    """
    found: dict[str, dict[str, ConfigValue]] = {command: {} for command in commands}
    for path in config_files():
        if path.exists() or (os.environ.get("STRETTO_CONFIG") and path == user_file()):
            _take_file(path, commands, found)
    _take_environment(commands, found)
    return found


def _take_file(path: Path, commands: Mapping[str, frozenset[str]], found: dict[str, dict[str, ConfigValue]]) -> None:
    tables = _read(path)
    every = frozenset[str]().union(*commands.values())
    for name, table in tables.items():
        if not isinstance(table, dict):
            raise InvalidInput(f"stands outside a table; write [{DEFAULTS}] above it", source=str(path), field=name)
        if name != DEFAULTS and name not in commands:
            raise _unknown("table", name, [DEFAULTS, *commands], path, name)
        for key, value in table.items():
            option = key.replace("-", "_")
            known = every if name == DEFAULTS else commands[name]
            if option not in known:
                raise _unknown("setting", key, known, path, f"{name}.{key}")
            if not isinstance(value, (str, int, float)):
                raise InvalidInput(
                    f"{value!r} is not a text, a number or true or false", source=str(path), field=f"{name}.{key}"
                )
    # Within a file, what is said to one command counts more than what is said to all.
    for name in sorted(tables, key=lambda table: table != DEFAULTS):
        for key, value in tables[name].items():
            option = key.replace("-", "_")
            for command in commands if name == DEFAULTS else (name,):
                if option in commands[command]:
                    found[command][option] = ConfigValue(value, f"{path} [{name}]")


def _read(path: Path) -> dict[str, Any]:
    import tomllib  # most people have no such file, and need not wait for its reader

    try:
        with open(path, "rb") as stream:
            data = stream.read(_MAX_BYTES + 1)
        if len(data) > _MAX_BYTES:
            raise InvalidInput(f"more than {_MAX_BYTES:,} bytes are no settings", source=str(path))
        return tomllib.loads(data.decode())
    except OSError as error:
        raise InvalidInput(error.strerror or str(error), source=str(path)) from None
    except (ValueError, RecursionError) as error:  # wrong TOML, no text, thousands of digits, endless brackets
        raise InvalidInput(f"not TOML: {error}", source=str(path)) from None


def _unknown(what: str, name: str, known: Iterable[str], path: Path, field: str) -> InvalidInput:
    return InvalidInput(str(UnknownName(what, name, known)), source=str(path), field=field)


def _take_environment(commands: Mapping[str, frozenset[str]], found: dict[str, dict[str, ConfigValue]]) -> None:
    for command, options in commands.items():
        for option in options:
            for name in (f"STRETTO_{option.upper()}", f"STRETTO_{command.upper().replace('-', '_')}_{option.upper()}"):
                if os.environ.get(name):
                    found[command][option] = ConfigValue(os.environ[name], f"environment {name}")
