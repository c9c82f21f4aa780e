"""Errors of the work as answers: a status and a body, never a traceback."""

from __future__ import annotations

import logging
from typing import Any

from stretto.errors import StrettoError, UnknownName
from stretto.web.replies import body_of, shown

_log = logging.getLogger("stretto.web")


def failure_of(error: BaseException) -> dict[str, Any]:
    """Return status and body for whatever a piece of work raised."""
    if isinstance(error, UnknownName) and str(error).startswith("unknown run"):
        return {"status": 404, "body": body_of(error)}
    if isinstance(error, StrettoError):
        return {"status": 422, "body": body_of(error)}
    if isinstance(error, MemoryError):
        return {
            "status": 413,
            "body": {"error": "this needs more memory than a job may use", "field": None, "value": None},
        }
    _log.exception("work failed", exc_info=error)
    text = f"this cannot be done: {type(error).__name__}: {shown(str(error))}"
    return {"status": 422, "body": {"error": text, "field": None, "value": None}}
