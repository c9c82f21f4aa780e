"""The commands of ``stretto`` by name, with their settings, and what Ctrl-C means to them."""

from __future__ import annotations

import os
import sys
from typing import Any

import typer
from typer.core import TyperGroup

from stretto.cli.commands.bound import bound
from stretto.cli.commands.compare import compare
from stretto.cli.commands.config_cmd import config
from stretto.cli.commands.convert import convert
from stretto.cli.commands.demo import demo
from stretto.cli.commands.doctor import doctor
from stretto.cli.commands.engines import engines
from stretto.cli.commands.explain import explain
from stretto.cli.commands.gantt import gantt
from stretto.cli.commands.help_cmd import help_page
from stretto.cli.commands.listing import list_components
from stretto.cli.commands.plan import plan
from stretto.cli.commands.prices import prices
from stretto.cli.commands.rack import rack
from stretto.cli.commands.replay import replay
from stretto.cli.commands.report import report
from stretto.cli.commands.run import run
from stretto.cli.commands.serve import serve
from stretto.cli.commands.show import show
from stretto.cli.commands.simulate import simulate
from stretto.cli.commands.steer import steer
from stretto.cli.commands.testbed import testbed
from stretto.cli.commands.train import train
from stretto.cli.commands.version import version
from stretto.cli.configured import UNAFFECTED, default_map
from stretto.cli.examples import SUMMARIES, epilog
from stretto.cli.exit_codes import EXIT_BROKEN_PIPE, EXIT_INTERRUPTED
from stretto.cli.help_types import hide_types
from stretto.cli.terminal.console import remark
from stretto.cli.terminal.interrupt import answering_ctrl_c

_EPILOG = (
    "Exit codes: 0 success; 1 internal error (STRETTO_DEBUG=1 shows the traceback); 2 wrong input or usage; "
    "3 an engine failed; 130 interrupted, a partial result was printed if there was one; 141 the reader of a pipe "
    "went away. More: stretto help exit-codes, stretto help environment, stretto help sources."
)


class _Group(TyperGroup):
    """Brings in the settings, and handles what must not reach typer: Ctrl-C and a reader that went away."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        hide_types(self)

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
        return result


app = typer.Typer(
    name="stretto",
    cls=_Group,
    help="Decide what runs where, and in which order, on clusters whose processors differ.",
    epilog=_EPILOG,
    rich_markup_mode=None,
    add_completion=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
for _name, _command in (
    ("plan", plan),
    ("compare", compare),
    ("bound", bound),
    ("simulate", simulate),
    ("train", train),
    ("replay", replay),
    ("rack", rack),
    ("run", run),
    ("engines", engines),
    ("explain", explain),
    ("report", report),
    ("serve", serve),
    ("show", show),
    ("gantt", gantt),
    ("convert", convert),
    ("list", list_components),
    ("demo", demo),
    ("doctor", doctor),
    ("help", help_page),
    ("version", version),
):
    app.command(_name, epilog=epilog(_name), short_help=SUMMARIES.get(_name))(_command)
for _name, _group in (("config", config), ("prices", prices), ("steer", steer), ("testbed", testbed)):
    app.add_typer(_group, name=_name, epilog=epilog(_name), short_help=SUMMARIES.get(_name))
