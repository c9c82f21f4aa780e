"""Errors as answers: a status and a body, never a traceback or a path of this machine."""

from __future__ import annotations

import errno
import logging
import sqlite3
from collections.abc import Iterator

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from stretto.errors import StrettoError, UnknownName
from stretto.reports.page.view_types import JsonObject
from stretto.web.replies import JsonReply, body_of

_log = logging.getLogger("stretto.web")
_FULL_SQLITE = (sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR_WRITE)
_FULL_ERRNO = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


def failure_of(error: BaseException) -> JsonObject:
    """Return status and body for whatever a piece of work raised."""
    fault = next(_faults_of_files(error), None)
    if fault is not None:
        _log.warning("a file cannot be read or written: %s", error)
        if _is_full(fault):
            return _failure(507, "the disk of the server is full; nothing was saved. Free some space and try again")
        return _failure(500, "the server cannot read or write its files; its log has the reason")
    if isinstance(error, UnknownName) and str(error).startswith("unknown run"):
        return {"status": 404, "body": body_of(error)}
    if isinstance(error, StrettoError):
        return {"status": 422, "body": body_of(error)}
    if isinstance(error, MemoryError):
        return _failure(413, "this needs more memory than a job may use")
    if isinstance(error, RecursionError):
        return _failure(422, "this is nested too deeply")
    _log.error("work failed", exc_info=error)
    return _failure(500, "internal error; the server log has the reason")


class Failures:
    """Answers what no handler knows; uvicorn would do it in plain text."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on; where that fails before the answer has begun, answer."""
        has_begun = False

        async def noting(message: Message) -> None:
            nonlocal has_begun
            has_begun = True
            await send(message)

        try:
            await self.app(scope, receive, noting)
        except Exception as error:
            if has_begun or scope["type"] != "http":
                raise
            failure = failure_of(error)
            await JsonReply(failure["body"], failure["status"])(scope, receive, send)


def _failure(status: int, text: str) -> JsonObject:
    return {"status": status, "body": {"error": text, "field": None, "value": None}}


def _faults_of_files(error: BaseException | None) -> Iterator[sqlite3.Error | OSError]:
    """Yield the errors of files and of the run log that an error comes from."""
    for _ in range(10):
        if isinstance(error, sqlite3.Error) or (isinstance(error, OSError) and error.errno is not None):
            yield error
        if error is None:
            return
        error = error.__cause__ or error.__context__


def _is_full(fault: sqlite3.Error | OSError) -> bool:
    if isinstance(fault, OSError):
        return fault.errno in _FULL_ERRNO
    return getattr(fault, "sqlite_errorcode", None) in _FULL_SQLITE
