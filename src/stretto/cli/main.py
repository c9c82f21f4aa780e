"""The entry point of ``stretto``: Ctrl-C from the first moment, errors as one line, documented exit codes."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import Any

from stretto.cli.early_interrupt import leave_on_ctrl_c
from stretto.cli.exit_codes import EXIT_INPUT, EXIT_INTERNAL, EXIT_INTERRUPTED


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code."""
    if argv is not None:
        return _guarded(list(argv))
    leave_on_ctrl_c()  # before anything that takes time is imported
    code = _guarded(list(sys.argv[1:]))
    leave_on_ctrl_c()  # nothing is left to keep while Python ends
    if code == EXIT_INTERRUPTED and _has_other_threads():
        # Python would wait for compiled code in other threads, which knows nothing of Ctrl-C, or crash under it.
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)
    return code


def _has_other_threads() -> bool:
    import threading

    return threading.active_count() > 1


def _guarded(words: list[str]) -> int:
    from stretto.cli.console import guarded_streams

    with guarded_streams():
        return _run(words)


def _run(words: list[str]) -> int:
    import typer

    from stretto.cli.app import app
    from stretto.cli.console import remark
    from stretto.errors import StrettoError

    # The base of all usage errors; where it lives differs between releases of typer.
    usage_error: type[Exception] = typer.BadParameter.__mro__[2]
    try:
        code = app(words or ["--help"], prog_name="stretto", standalone_mode=False)
    except KeyboardInterrupt:  # while the command was still being found
        remark("interrupted")
        return EXIT_INTERRUPTED
    except StrettoError as error:
        return _fail(str(error), error.exit_code)
    except usage_error as error:
        return _fail(_usage_text(error), EXIT_INPUT)
    except MemoryError:
        return _fail("not enough memory; try a smaller graph, a smaller cluster or another policy", EXIT_INPUT)
    except Exception as error:
        if os.environ.get("STRETTO_DEBUG"):
            import traceback

            traceback.print_exc()
        hint = "set STRETTO_DEBUG=1 for the traceback"
        return _fail(f"internal: {type(error).__name__}: {error} ({hint})", EXIT_INTERNAL)
    return code if isinstance(code, int) else 0


def _fail(message: str, code: int) -> int:
    from stretto.cli.console import remark

    remark(f"error: {' '.join(message.split())}")
    return code


def _usage_text(error: Any) -> str:
    """Return the parser's complaint with the command that explains the right usage."""
    from stretto.cli.configured import origin
    from stretto.cli.examples import first_example

    text = str(error.format_message()).replace("Value error, ", "").rstrip(".")
    context, param = getattr(error, "ctx", None), getattr(error, "param", None)
    path = context.command_path if context is not None else "stretto"
    parts = getattr(context and context.command, "commands", {})
    if text.startswith("Usage:"):  # the whole help, where a command of several parts is called without one
        text = f"Missing argument: one of {', '.join(parts)}"
    if context is not None and param is not None:
        where = origin(context, param.name)
        text += f": {where}" if where is not None else ""
    example = first_example(path.removeprefix("stretto ")) if text.startswith("Missing argument") else None
    text += f"; type for example: {example}" if example is not None else ""
    return f"{text} (see {path} --help)" if text else f"see {path} --help"


if __name__ == "__main__":
    sys.exit(main())
