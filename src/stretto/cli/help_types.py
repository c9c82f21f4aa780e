"""Help without the types of Python: ``GRAPH``, not ``GRAPH <str>``; an argument's own text says what it is."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

_TYPE = re.compile(r" <[^<>]*>$")


def hide_types(command: Any) -> None:
    """Leave the types that typer adds to arguments out of the help of a command, and of those below it."""
    for param in command.params:
        if param.param_type_name == "argument":
            param.get_help_record = _without_type(param.get_help_record)
    for below in getattr(command, "commands", {}).values():
        hide_types(below)


def _without_type(record: Callable[[Any], tuple[str, str] | None]) -> Callable[[Any], tuple[str, str] | None]:
    def plain(context: Any) -> tuple[str, str] | None:
        found = record(context)
        return found if found is None else (_TYPE.sub("", found[0]), found[1])

    return plain
