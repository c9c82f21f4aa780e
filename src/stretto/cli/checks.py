"""What a command does with its options before any work: it makes objects of them, and refuses what cannot be."""

from __future__ import annotations

import dataclasses
import functools
import inspect
import os
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, TypeVar, get_type_hints

import typer

from stretto.cli.configured import is_typed
from stretto.errors import InvalidInput

C = TypeVar("C", bound=Callable[..., None])


def expanded(**groups: tuple[type, Mapping[str, object]]) -> Callable[[C], C]:
    """Let a command take objects where its user gives options.

    Each keyword names a parameter of the command, the class of its values, and the option of each field (the class may
    have more fields). Where a field without a default is not given, the whole object is None.
    """

    def decorate(command: C) -> C:
        hints = get_type_hints(command, include_extras=True)
        parameters: list[inspect.Parameter] = []
        for name, parameter in inspect.signature(command).parameters.items():
            if name in groups:
                parameters += _options(*groups[name])
            else:
                parameters.append(parameter.replace(annotation=hints[name], kind=inspect.Parameter.KEYWORD_ONLY))

        @functools.wraps(command)
        def run(**given: Any) -> None:
            for name, (made, options) in groups.items():
                given[name] = _object(made, {field: given.pop(field) for field in options})
            command(**given)

        run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
        run.__annotations__ = {one.name: one.annotation for one in parameters}
        return run  # type: ignore[return-value]

    return decorate


def _options(made: type, options: Mapping[str, object]) -> list[inspect.Parameter]:
    fields = {field.name: field for field in dataclasses.fields(made)}
    return [
        inspect.Parameter(
            name,
            inspect.Parameter.KEYWORD_ONLY,
            default=None if fields[name].default is dataclasses.MISSING else fields[name].default,
            annotation=annotation,
        )
        for name, annotation in options.items()
    ]


def _object(made: type, values: dict[str, Any]) -> Any:
    needed = {field.name for field in dataclasses.fields(made) if field.default is dataclasses.MISSING}
    return None if any(values[name] is None for name in needed) else made(**values)


def refuse_with(context: typer.Context, mode: str, names: Iterable[str], why: str) -> None:
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


def refuse_without(context: typer.Context, mode: str, names: Iterable[str], why: str = "") -> None:
    """Raise for the first of the parameters that was typed although it needs ``mode``."""
    for name in names:
        if is_typed(context, name):
            raise InvalidInput(
                f"has no effect without {mode}" + (f": {why}" if why else ""), field=written(context, name)
            )


def written(context: typer.Context, name: str) -> str:
    """Return a parameter as users write it: the longest spelling of an option, or the name of an argument."""
    for parameter in context.command.params:
        if parameter.name == name:
            if parameter.param_type_name == "argument":
                return str(parameter.metavar or name.upper())
            return str(max(parameter.opts, key=len))
    raise AssertionError(f"{context.command.name} has no parameter {name!r}")


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


def check_folder(path: str | None) -> None:
    """Make the folder of pictures, or say why there cannot be one."""
    if path is None:
        return
    try:
        os.makedirs(path, exist_ok=True)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise InvalidInput(f"cannot make this directory: {reason}", source=path) from None
