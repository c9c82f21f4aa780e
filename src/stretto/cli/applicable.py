"""Options that have no effect beside another one are errors that name both."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from stretto.cli.configured import is_typed
from stretto.errors import InvalidInput


def refuse_with(context: Any, mode: str, names: Iterable[str], why: str) -> None:
    """Raise for the first of the parameters that was typed although ``mode`` leaves it without effect.

    Settings of files and the environment are not typed: they speak to many commands, and are passed over.

    Parameters
    ----------
    mode
        The option or the argument that decides, as the user wrote it: ``--pools``.
    names
        Parameters of the command, by their names in Python.
    why
        What the mode means instead, as the end of a sentence.
    """
    for name in names:
        if is_typed(context, name):
            raise InvalidInput(f"cannot be combined with {mode}: {why}", field=written(context, name))


def refuse_without(context: Any, mode: str, names: Iterable[str], why: str = "") -> None:
    """Raise for the first of the parameters that was typed although it needs ``mode``."""
    for name in names:
        if is_typed(context, name):
            raise InvalidInput(
                f"has no effect without {mode}" + (f": {why}" if why else ""), field=written(context, name)
            )


def written(context: Any, name: str) -> str:
    """Return a parameter as users write it: the longest spelling of an option, or the name of an argument."""
    for parameter in context.command.params:
        if parameter.name == name:
            if parameter.param_type_name == "argument":
                return str(parameter.metavar or name.upper())
            return str(max(parameter.opts, key=len))
    raise AssertionError(f"{context.command.name} has no parameter {name!r}")
