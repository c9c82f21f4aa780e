"""Settings become defaults of options, so that ``--help`` shows them and flags still win."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from stretto.config import CONFIGURABLE, ConfigValue, config_files, read_settings

#: Commands that must work however wrong the settings are, since they help to mend them.
UNAFFECTED = frozenset({"config", "doctor", "help", "version", "list"})


def options_of(commands: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Return the configurable options of each command with their built-in defaults."""
    return {
        name: {
            option.name: option.default
            for option in command.params
            if option.param_type_name == "option" and option.name in CONFIGURABLE
        }
        for name, command in commands.items()
        if name not in UNAFFECTED
    }


def settings_of(commands: Mapping[str, Any]) -> dict[str, dict[str, ConfigValue]]:
    """Return what files and the environment set, for each command that has such options."""
    options = {name: frozenset(found) for name, found in options_of(commands).items()}
    return read_settings({name: found for name, found in options.items() if found})


def default_map(commands: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Return the settings in the form in which the parser of the command line takes defaults."""
    if not any(name.startswith("STRETTO_") for name in os.environ) and not any(
        path.exists() for path in config_files()
    ):
        return {}  # without looking at the options of every command
    return {
        command: {option: setting.value for option, setting in found.items()}
        for command, found in settings_of(commands).items()
        if found
    }


def origin(context: Any, option: str) -> str | None:
    """Return where the value of an option was set, when that is not the command line."""
    root = context.find_root()
    if context is root or is_typed(context, option):
        return None
    setting = settings_of(root.command.commands).get(context.info_name, {}).get(option)
    return f"{setting.value!r} from {setting.source}" if setting is not None else None


def is_typed(context: Any, option: str) -> bool:
    """Say whether an option stands on the command line; a setting speaks to many commands, and means less."""
    source = context.get_parameter_source(option)
    return source is not None and source.name == "COMMANDLINE"
