"""``stretto serve``: the dashboard and the HTTP API, on this machine."""

from __future__ import annotations

import os
import secrets
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from stretto.cli.console import remark
from stretto.cli.serve_access import can_open_browser, kept_token, open_browser, token_path
from stretto.errors import InvalidInput, MissingExtra

_LIBRARIES = ("fastapi", "starlette", "uvicorn", "pydantic", "anyio", "prometheus_client", "sse_starlette")


def serve(
    host: Annotated[
        str,
        typer.Option(
            "--host",
            metavar="ADDRESS",
            help="Address to listen on. Only the default cannot be reached from other machines.",
        ),
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option("--port", metavar="N", help="Port; 0 selects a free port.")] = 8137,
    token_file: Annotated[
        Path | None,
        typer.Option(
            "--token-file",
            metavar="FILE",
            help="File with the token that clients must send; alternatively set STRETTO_TOKEN.",
            show_default="one is made and kept beside the run log",
        ),
    ] = None,
    no_token: Annotated[
        bool,
        typer.Option(
            "--no-token", help="Allow every user of this machine without a token; only on this machine's own address."
        ),
    ] = False,
    no_browser: Annotated[
        bool, typer.Option("--no-browser", help="Print the link, and do not open a browser.")
    ] = False,
    runs: Annotated[
        Path | None, typer.Option("--runs", metavar="FILE", help="File of the run log.", show_default="your own")
    ] = None,
    workers: Annotated[
        int, typer.Option("--workers", metavar="N", help="Number of processes that plan and replay.")
    ] = 2,
    max_job_seconds: Annotated[
        float, typer.Option("--max-job-seconds", metavar="SECONDS", help="Time limit of a job.")
    ] = 300.0,
    max_body: Annotated[str, typer.Option("--max-body", metavar="SIZE", help="Largest size of a request.")] = "32MiB",
) -> None:
    """Show runs in the browser, and serve the HTTP API. Ctrl-C stops the server."""
    from stretto.core.units import parse_bytes, stating_unit
    from stretto.runlog.place import default_path

    given = _token(token_file)
    if no_token and given is not None:
        raise InvalidInput("a token is given too (--token-file or STRETTO_TOKEN): leave one out", field="--no-token")
    log_path = runs if runs is not None else default_path()
    is_kept = given is None and not no_token
    token = kept_token(log_path) if is_kept else given
    code = secrets.token_urlsafe(24) if token is not None else None

    def tell(address: str) -> None:
        if code is None:
            remark("warning: without a token every user of this machine can read your runs and start jobs as you")
            print(f"Stretto is at {address}  (Ctrl-C stops it)", flush=True)
            return
        link = f"{address}/login?code={code}"
        print(f"Stretto is at {address}  (Ctrl-C stops it)")
        print(f"open {link}  (logs one browser in, once, within 15 minutes)")
        if is_kept:
            print(f"programs send the header Authorization: Bearer TOKEN, with the token in {token_path(log_path)}")
        sys.stdout.flush()
        if not no_browser and can_open_browser():
            open_browser(link)

    _server()(
        tell,
        host=host,
        port=port,
        token=token,
        login_code=code,
        runs_path=runs,
        num_workers=workers,
        max_job_s=max_job_seconds,
        max_body_bytes=int(parse_bytes(stating_unit(max_body, field="--max-body", units=("kB", "MiB")))),
    )


def _server() -> Any:
    """Return the server; it is found by name, for the command line and the web do not import each other."""
    from stretto.registry import resolve

    try:
        return resolve("stretto.web.server:serve")
    except ImportError as error:
        if (error.name or "").partition(".")[0] not in _LIBRARIES:
            raise
        raise MissingExtra(str(error.name), "web", "stretto serve") from None


def _token(path: Path | None) -> str | None:
    """Return the token of the file or the environment, None where neither has one."""
    if path is None:
        return os.environ.get("STRETTO_TOKEN") or None
    try:
        token = path.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "not UTF-8 text"
        raise InvalidInput(reason or str(error), source=str(path), field="--token-file") from None
    if not token:
        raise InvalidInput("is empty", source=str(path), field="--token-file")
    return token
