"""``stretto logs``: what the commands of a run have written, while it runs and after."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from stretto.cli.console import Output, print_json, remark
from stretto.cli.options import OutputOption

if TYPE_CHECKING:
    from stretto.api.logs import LogPiece


def logs(
    run: Annotated[
        str,
        typer.Argument(metavar="RUN", help="The id of a run, the beginning of an id, or 'latest'.", show_default=False),
    ],
    task: Annotated[
        str | None,
        typer.Argument(metavar="[TASK]", help="Print only the output of this task.", show_default="all tasks"),
    ] = None,
    follow: Annotated[
        bool, typer.Option("--follow", "-f", help="Wait for more output until the run has ended.")
    ] = False,
    output: OutputOption = Output.TABLE,
) -> None:
    """Print stdout and stderr of the commands of a run. Output of a single task goes to stdout and stderr."""
    from stretto.api import logs as pieces

    found = pieces(run, task, follow=follow)
    if output is Output.JSON:
        print_json([{"task": p.task, "attempt": p.attempt, "stream": p.stream, "text": p.text} for p in found])
        return
    last: tuple[str, int, str] | None = None
    for piece in found:
        source = (piece.task, piece.attempt, piece.stream)
        if task is None and output is Output.TABLE and source != last:
            _write_head(piece, is_first=last is None)
        last = source
        is_error = task is not None and piece.stream == "stderr"
        target = sys.stderr if is_error else sys.stdout
        target.write(piece.text)
        target.flush()
    if last is None and output is Output.TABLE:
        remark("no task of this run has written anything" if task is None else f"task {task!r} has written nothing")


def _write_head(piece: LogPiece, *, is_first: bool) -> None:
    attempt = f", attempt {piece.attempt}" if piece.attempt > 1 else ""
    sys.stdout.write(f"{'' if is_first else chr(10)}==> {piece.task}{attempt}, {piece.stream} <==\n")
