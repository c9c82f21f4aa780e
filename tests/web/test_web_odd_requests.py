"""Requests that no browser sends, handed to the server as a careless front end would."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from own_loop import run_alone

from stretto.web.app import create_app
from stretto.web.settings import ServeSettings


def ask(app: Any, **changes: Any) -> tuple[int, dict[str, Any]]:
    """Return status and body of the answer to a request, raw as it is."""
    scope: dict[str, Any] = {"type": "http", "asgi": {"version": "3.0"}, "http_version": "1.1", "scheme": "http"}
    scope |= {"method": "GET", "root_path": "", "query_string": b"", "client": ("127.0.0.1", 5)}
    scope |= {"headers": [(b"host", b"localhost")], **changes}
    sent: list[Any] = []

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message: Any) -> None:
        sent.append(message)

    run_alone(app({**scope, "raw_path": scope["path"].encode()}, receive, send))
    return sent[0]["status"], json.loads(b"".join(message.get("body", b"") for message in sent[1:]))


@pytest.fixture
def app(tmp_path: Path) -> Any:
    return create_app(ServeSettings(runs_path=tmp_path / "runs.db"))


@pytest.mark.parametrize("path", ["/no/such/page", "/api/health", "/api/runs/x"])
def test_an_address_that_is_not_ascii_is_refused(app: Any, path: str) -> None:
    status, body = ask(app, path=path, query_string=b"limit=\xed\xa0\x80")
    assert status == 400
    assert body["field"] == "query"


def test_a_path_that_is_not_there_is_told_as_it_came(app: Any) -> None:
    assert ask(app, path="/no/\u00e9")[1] == {"error": "Not Found", "field": None, "value": "/no/\u00e9"}
    assert ask(app, path="/api/health", method="MADE-UP")[0] == 405
