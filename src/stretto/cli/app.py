"""The commands of ``stretto`` by name, with their settings, and what Ctrl-C means to them."""

from __future__ import annotations

import functools
import importlib
import os
import re
import sys
from collections.abc import Callable, Iterator, MutableMapping
from typing import Any

import typer
from typer.core import TyperGroup

from stretto.cli.configured import UNAFFECTED, default_map
from stretto.cli.console import remark
from stretto.cli.examples import SUMMARIES, epilog
from stretto.cli.exit_codes import EXIT_BROKEN_PIPE, EXIT_INTERRUPTED
from stretto.cli.interrupt import answering_ctrl_c
from stretto.errors import InvalidInput

#: Commands and groups of commands, in the order of ``stretto --help``: module of ``cli.commands`` and its attribute.
COMMANDS = {
    "plan": "plan:plan",
    "place": "place:place",
    "calibrate": "place:calibrate",
    "pipeline": "place:pipeline",
    "compare": "compare:compare",
    "bound": "bound:bound",
    "simulate": "simulate:simulate",
    "train": "train:train",
    "replay": "replay:replay",
    "when": "when:when",
    "rack": "rack:rack",
    "run": "run:run",
    "logs": "logs:logs",
    "engines": "engines:engines",
    "explain": "explain:explain",
    "report": "report:report",
    "serve": "serve:serve",
    "show": "show:show",
    "gantt": "gantt:gantt",
    "convert": "convert:convert",
    "nextflow": "nextflow:nextflow",
    "list": "listing:list_components",
    "demo": "demo:demo",
    "doctor": "doctor:doctor",
    "help": "help_cmd:help_page",
    "version": "version:version",
    "config": "config_cmd:config",
    "prices": "prices:prices",
    "steer": "steer:steer",
    "testbed": "testbed:testbed",
}
#: The type of Python that typer adds to the help of an argument.
_TYPE = re.compile(r" <[^<>]*>$")
_EPILOG = (
    "Exit codes: 0 success; 1 internal error (STRETTO_DEBUG=1 shows the traceback); 2 wrong input or usage; "
    "3 an engine failed; 4 a plan misses its deadline or budget; 130 interrupted, a partial result was printed if "
    "there was one; 141 the reader of a pipe was closed. More: stretto help exit-codes, stretto help environment, "
    "stretto help sources."
)


class _Commands(MutableMapping[str, Any]):
    """The commands by name, each imported when it is asked for."""

    def __init__(self, added: MutableMapping[str, Any]) -> None:
        self._loaded = dict(added)

    def __getitem__(self, name: str) -> Any:
        if name not in self._loaded and name in COMMANDS:
            self._loaded[name] = _load(name)
        return self._loaded[name]

    def __setitem__(self, name: str, command: Any) -> None:
        self._loaded[name] = command

    def __delitem__(self, name: str) -> None:
        del self._loaded[name]

    def __iter__(self) -> Iterator[str]:
        return iter({**COMMANDS, **self._loaded})

    def __len__(self) -> int:
        return len({**COMMANDS, **self._loaded})


@functools.cache
def _load(name: str) -> Any:
    module, attribute = COMMANDS[name].split(":")
    command = getattr(importlib.import_module(f"stretto.cli.commands.{module}"), attribute)
    parent = typer.Typer(rich_markup_mode=None, add_completion=False)
    words: dict[str, Any] = {"name": name, "epilog": epilog(name), "short_help": SUMMARIES[name]}
    if isinstance(command, typer.Typer):
        parent.add_typer(command, **words)
    else:
        parent.command(**words)(command)
    made = typer.main.get_group(parent).commands[name]
    _hide_types(made)
    return made


class _Group(TyperGroup):
    """Brings in the settings, and handles what must not reach typer: Ctrl-C and a reader that went away."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self.commands = _Commands(self.commands)

    def list_commands(self, ctx: Any) -> list[str]:
        return list(COMMANDS)

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        with formatter.section("Commands"):  # from the table: importing every command takes longer than printing
            formatter.write_dl([(name, SUMMARIES[name]) for name in COMMANDS])

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        name, command, rest = super().resolve_command(ctx, args)
        if name not in UNAFFECTED and not ctx.resilient_parsing:
            ctx.default_map = default_map(self.commands)
        return name, command, rest

    def invoke(self, ctx: Any) -> Any:
        try:
            with answering_ctrl_c():
                result = super().invoke(ctx)
                sys.stdout.flush()
        except KeyboardInterrupt:
            remark("interrupted")
            raise typer.Exit(EXIT_INTERRUPTED) from None
        except BrokenPipeError:
            # What is still buffered has no reader; without this Python complains at exit.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            raise typer.Exit(EXIT_BROKEN_PIPE) from None
        except InvalidInput as error:
            raise _as_typed(error, self.commands.get(str(ctx.invoked_subcommand))) from error.__cause__
        return result


def _as_typed(error: InvalidInput, command: Any) -> InvalidInput:
    """Return an error about a parameter of a Python function as one about the option that the user typed."""
    below = getattr(command, "commands", {}).values()
    options = {one.name: max(one.opts, key=len) for part in (command, *below) if part for one in part.params}
    if error.source is not None or error.field not in options:
        return error
    return type(error)(error.message, line=error.line, field=options[error.field])


def _hide_types(command: Any) -> None:
    """Leave the types that typer adds to arguments out of the help of a command, and of those below it."""
    for param in command.params:
        if param.param_type_name == "argument":
            param.get_help_record = _without_type(param.get_help_record)
    for below in getattr(command, "commands", {}).values():
        _hide_types(below)


def _without_type(record: Callable[[Any], tuple[str, str] | None]) -> Callable[[Any], tuple[str, str] | None]:
    def plain(context: Any) -> tuple[str, str] | None:
        found = record(context)
        return found if found is None else (_TYPE.sub("", found[0]), found[1])

    return plain


app = typer.Typer(
    name="stretto",
    cls=_Group,
    help="Decide what runs where, and in which order, on clusters with different processors.",
    epilog=_EPILOG,
    rich_markup_mode=None,
    add_completion=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


@app.callback()
def _root() -> None:
    pass
