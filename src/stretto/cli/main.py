"""The command ``stretto``: commands by name, errors as one line, documented exit codes."""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Sequence
from typing import Any

import typer
from typer.core import TyperGroup

from stretto.cli.bound import bound
from stretto.cli.compare import compare
from stretto.cli.console import remark
from stretto.cli.convert import convert
from stretto.cli.demo import demo
from stretto.cli.explain import explain
from stretto.cli.gantt import gantt
from stretto.cli.listing import list_components
from stretto.cli.plan import plan
from stretto.cli.prices import prices
from stretto.cli.replay import replay
from stretto.cli.show import show
from stretto.cli.simulate import simulate
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
    "130 interrupted, a partial result was printed if there was one; 141 the reader of a pipe went away."
)


class _Group(TyperGroup):
    """Handles what must not reach typer: Ctrl-C and a reader that went away."""

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
    add_completion=False,
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
    ("explain", explain),
    ("show", show),
    ("gantt", gantt),
    ("convert", convert),
    ("list", list_components),
    ("demo", demo),
    ("version", version),
):
    app.command(_name)(_command)
app.add_typer(prices, name="prices")


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code."""
    words = list(sys.argv[1:] if argv is None else argv)
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
    path = error.ctx.command_path if getattr(error, "ctx", None) is not None else "stretto"
    return f"{text} (see {path} --help)" if text else f"see {path} --help"


if __name__ == "__main__":
    sys.exit(main())
