"""Answers in JSON: results as they are, and errors that say what, where and with which value."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import PurePath
from typing import Any

from pydantic import BaseModel, Field
from starlette.responses import JSONResponse

from stretto.errors import InvalidInput, StrettoError, UnknownName
from stretto.reports.strict_json import dumps, plain

#: Letters of a value that an error shows.
_SHOWN = 200


class Problem(BaseModel):
    """What went wrong: in words, and the field and the value at fault where one is."""

    error: str = Field(description="What is wrong, for people.")
    field: str | None = Field(default=None, description="The field at fault.")
    value: Any = Field(default=None, description="The value at fault.")


class Json(JSONResponse):
    """Strict JSON: no NaN, and no text that UTF-8 cannot hold."""

    def render(self, content: Any) -> bytes:
        return content if isinstance(content, bytes) else dumps(content).encode(errors="replace")


class Refusal(Exception):
    """An answer that is not a result."""

    def __init__(
        self,
        status: int,
        error: str,
        field: str | None = None,
        value: Any = None,
        headers: dict[str, str] | None = None,
    ) -> None:
        super().__init__(error)
        self.status = status
        self.body = {"error": error, "field": field, "value": shown(value)}
        self.headers = headers

    @property
    def reply(self) -> Json:
        return Json(self.body, self.status, self.headers)


def shown(value: Any) -> Any:
    """Return a value as an error may show it: short, and in JSON's own types."""
    simple = plain(value)
    text = simple if isinstance(simple, str) else dumps(simple)
    if len(text) <= _SHOWN:
        return simple
    return text[: _SHOWN - 3] + "..."


def body_of(error: StrettoError) -> dict[str, Any]:
    """Return an error of the library as the API says it."""
    if isinstance(error, InvalidInput) and error.source is not None and error.source.startswith("/"):
        # A file of the server, not of the request: its name says enough.
        error = InvalidInput(error.message, source=PurePath(error.source).name, line=error.line, field=error.field)
    field = error.field or error.source if isinstance(error, InvalidInput) else None
    value = error.name if isinstance(error, UnknownName) else None
    return {"error": str(error), "field": field, "value": shown(value)}


def refusals(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """Return the part of the API's description that lists errors."""
    meaning: Mapping[int, str] = {
        400: "The request cannot be read.",
        401: "The token is missing or wrong.",
        403: "The request comes from another site.",
        404: "There is no such thing.",
        405: "This cannot be done here.",
        408: "It took longer than its limit.",
        409: "It was cancelled.",
        413: "The request is too large.",
        415: "The request must be application/json.",
        422: "A value cannot be used.",
        429: "Too much at once; Retry-After says when to come again.",
        500: "The server failed; its log says why.",
        507: "The disk of the server is full.",
    }
    return {
        status: {"model": Problem, "description": meaning[status]}
        for status in (400, 401, 403, *statuses, 429, 500, 507)
    }
