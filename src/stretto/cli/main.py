"""The command ``stretto``: commands by name, errors as one line, documented exit codes."""

from __future__ import annotations

import os
import sys
import threading
import traceback
from collections.abc import Sequence
from typing import Any

import typer
from typer.core import TyperGroup

from stretto.cli.bound import bound
from stretto.cli.compare import compare
from stretto.cli.config_cmd import config
from stretto.cli.configured import UNAFFECTED, default_map, origin
from stretto.cli.console import remark
from stretto.cli.convert import convert
from stretto.cli.demo import demo
from stretto.cli.doctor import doctor
from stretto.cli.engines import engines
from stretto.cli.examples import SUMMARIES, epilog
from stretto.cli.explain import explain
from stretto.cli.gantt import gantt
from stretto.cli.help_cmd import help_page
from stretto.cli.listing import list_components
from stretto.cli.plan import plan
from stretto.cli.prices import prices
from stretto.cli.rack import rack
from stretto.cli.replay import replay
from stretto.cli.report import report
from stretto.cli.run import run
from stretto.cli.serve import serve
from stretto.cli.show import show
from stretto.cli.simulate import simulate
from stretto.cli.steer import steer
from stretto.cli.testbed import testbed
from stretto.cli.train import train
from stretto.cli.version import version
from stretto.errors import StrettoError

EXIT_INTERNAL = 1
EXIT_INPUT = 2
EXIT_INTERRUPTED = 130
EXIT_BROKEN_PIPE = 141

# The base of all usage errors; where it lives differs between releases of typer.
_UsageError: type[Exception] = typer.BadParameter.__mro__[2]

_EPILOG = (
    "Exit codes: 0 success; 1 internal error (STRETTO_DEBUG=1 shows the traceback); 2 wrong input or usage; "
    "3 an engine failed; 130 interrupted, a partial result was printed if there was one; 141 the reader of a pipe "
    "went away. More: stretto help exit-codes, stretto help environment, stretto help sources."
)


class _Group(TyperGroup):
    """Brings in the settings, and handles what must not reach typer: Ctrl-C and a reader that went away."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        name, command, rest = super().resolve_command(ctx, args)
        if name not in UNAFFECTED and not ctx.resilient_parsing:
            ctx.default_map = default_map(self.commands)
        return name, command, rest

    def invoke(self, ctx: Any) -> Any:
        try:
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


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code."""
    code = _run(list(sys.argv[1:] if argv is None else argv))
    if argv is None and code == EXIT_INTERRUPTED and _has_work_left():
        # Python would wait for compiled code in other threads, which knows nothing of Ctrl-C.
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)
    return code


def _has_work_left() -> bool:
    main_thread = threading.main_thread()
    return any(not thread.daemon for thread in threading.enumerate() if thread is not main_thread)


def _run(words: list[str]) -> int:
    try:
        code = app(words or ["--help"], prog_name="stretto", standalone_mode=False)
    except KeyboardInterrupt:  # while the command was still being found
        remark("interrupted")
        return EXIT_INTERRUPTED
    except StrettoError as error:
        return _fail(str(error), error.exit_code)
    except _UsageError as error:
        return _fail(_usage_text(error), EXIT_INPUT)
    except MemoryError:
        return _fail("not enough memory; try a smaller graph, a smaller cluster or another policy", EXIT_INPUT)
    except Exception as error:
        if os.environ.get("STRETTO_DEBUG"):
            traceback.print_exc()
        hint = "set STRETTO_DEBUG=1 for the traceback"
        return _fail(f"internal: {type(error).__name__}: {error} ({hint})", EXIT_INTERNAL)
    return code if isinstance(code, int) else 0


def _fail(message: str, code: int) -> int:
    remark(f"error: {' '.join(message.split())}")
    return code


def _usage_text(error: Any) -> str:
    """Return the parser's complaint with the command that explains the right usage."""
    text = str(error.format_message()).rstrip(".")
    context, param = getattr(error, "ctx", None), getattr(error, "param", None)
    path = context.command_path if context is not None else "stretto"
    if context is not None and param is not None:
        where = origin(context, param.name)
        text += f": {where}" if where is not None else ""
    return f"{text} (see {path} --help)" if text else f"see {path} --help"


if __name__ == "__main__":
    sys.exit(main())
