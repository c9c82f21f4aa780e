"""Answers in JSON: results as they are, and errors that say what, where and with which value."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import PurePath

from pydantic import BaseModel, Field
from starlette.responses import JSONResponse

from stretto.errors import InvalidInput, StrettoError, UnknownName
from stretto.reports.page.view_types import JsonObject
from stretto.reports.strict_json import dumps, plain
from stretto.runlog.record import Json

#: Letters of a value that an error shows.
_SHOWN = 200


class ErrorBody(BaseModel):
    """An error: a message, and the wrong field and value where there is one."""

    error: str = Field(description="Message for people.")
    field: str | None = Field(default=None, description="The wrong field.")
    value: Json = Field(default=None, description="The wrong value.")


class JsonReply(JSONResponse):
    """Strict JSON: no NaN, and no text that UTF-8 cannot hold."""

    def render(self, content: object) -> bytes:
        return content if isinstance(content, bytes) else dumps(content).encode(errors="replace")


class Refusal(Exception):
    """An answer that is not a result."""

    def __init__(
        self,
        status: int,
        error: str,
        field: str | None = None,
        value: object = None,
        headers: dict[str, str] | None = None,
    ) -> None:
        super().__init__(error)
        self.status = status
        self.body = {"error": error, "field": field, "value": shown(value)}
        self.headers = headers

    @property
    def reply(self) -> JsonReply:
        return JsonReply(self.body, self.status, self.headers)


def shown(value: object) -> Json:
    """Return a value as an error may show it: short, and in JSON's own types."""
    simple = plain(value)
    text = simple if isinstance(simple, str) else dumps(simple)
    if len(text) <= _SHOWN:
        return simple
    return text[: _SHOWN - 3] + "..."


def body_of(error: StrettoError) -> JsonObject:
    """Return an error of the library as the body of an answer."""
    if isinstance(error, InvalidInput) and error.source is not None and error.source.startswith("/"):
        # A file of the server, not of the request: its name says enough.
        error = InvalidInput(error.message, source=PurePath(error.source).name, line=error.line, field=error.field)
    field = error.field or error.source if isinstance(error, InvalidInput) else None
    value = error.name if isinstance(error, UnknownName) else None
    return {"error": str(error), "field": field, "value": shown(value)}


def refusals(*statuses: int) -> dict[int | str, JsonObject]:
    """Return the part of the API's description that lists errors."""
    meaning: Mapping[int, str] = {
        400: "The request cannot be read.",
        401: "The token is missing or wrong.",
        403: "The request comes from another site.",
        404: "Not found.",
        405: "Method not allowed.",
        408: "The time limit was exceeded.",
        409: "The job was cancelled.",
        413: "The request is too large.",
        415: "The request must be application/json.",
        422: "A value is invalid.",
        429: "Too many requests; Retry-After says when to try again.",
        500: "Internal error; the server log has the reason.",
        507: "The disk of the server is full.",
    }
    return {
        status: {"model": ErrorBody, "description": meaning[status]}
        for status in (400, 401, 403, *statuses, 429, 500, 507)
    }
