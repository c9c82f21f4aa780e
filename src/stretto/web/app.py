"""The server, assembled: guard, routes, workers, run log."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.middleware.gzip import GZipMiddleware
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

import stretto
from stretto.errors import StrettoError
from stretto.runlog import RunLog
from stretto.web import pages, routes_jobs, routes_runs
from stretto.web.failures import Failures, failure_of
from stretto.web.guard import RequestGuard, Tokens
from stretto.web.jobs import JobTable
from stretto.web.kept_jobs import KeptJobs
from stretto.web.login_code import LoginCode
from stretto.web.memory import limit_threads
from stretto.web.metrics import Requests
from stretto.web.pool import WorkerPool
from stretto.web.replies import JsonReply, Refusal, shown
from stretto.web.settings import ServeSettings
from stretto.web.views import Views

_ABOUT = "Plan task graphs, replay queues, and read the run log. Errors are JSON: what is wrong, the field, the value."


def create_app(settings: ServeSettings) -> FastAPI:
    """Return the server as an ASGI application."""

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        limit_threads()
        with RunLog.open(settings.runs_path) as log:
            place = (str(log.path), settings.worker_bytes)
            pool, readers = WorkerPool(settings.num_workers, *place), WorkerPool(1, *place)
            app.state.log, app.state.pool, app.state.readers = log, pool, readers
            app.state.jobs = JobTable(settings, pool, KeptJobs.beside(log.path))
            try:
                await readers.open()
                await pool.open()
                app.state.jobs.take_up()
                yield
            finally:
                await app.state.jobs.close()
                await pool.close()
                await readers.close()

    app = FastAPI(
        title="Stretto",
        version=stretto.__version__,
        description=_ABOUT,
        lifespan=lifespan,
        docs_url=None,  # FastAPI's pages load their scripts from elsewhere; ours is in pages.py
        redoc_url=None,
        default_response_class=JsonReply,
    )
    tokens = Tokens(settings.token) if settings.token is not None else None
    app.state.tokens, app.state.views, app.state.requests = tokens, Views(), Requests()
    app.state.login_code = LoginCode(settings.login_code)
    app.include_router(routes_runs.router)
    app.include_router(routes_jobs.router)
    app.include_router(pages.router)
    _handle_errors(app)
    app.add_middleware(Failures)
    app.add_middleware(GZipMiddleware, minimum_size=2000, compresslevel=3)
    app.add_middleware(Counting, requests=app.state.requests)
    app.add_middleware(RequestGuard, settings=settings, tokens=tokens)
    return app


class Counting:
    """Counts answers for the metrics."""

    def __init__(self, app: ASGIApp, requests: Requests) -> None:
        self.app = app
        self.requests = requests

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, and note how it was answered."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        begin, status = time.perf_counter(), 0

        async def noting(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        try:
            await self.app(scope, receive, noting)
        finally:
            route = getattr(scope.get("route"), "path", "other")
            self.requests.add(scope["method"], route, status, time.perf_counter() - begin)


def _handle_errors(app: FastAPI) -> None:
    def handle(kind: type[Exception], reply: Callable[[Request, Exception], Awaitable[Response]]) -> None:
        app.add_exception_handler(kind, reply)

    async def on_refusal(request: Request, error: Exception) -> Response:
        assert isinstance(error, Refusal)
        return pages.missing(request.headers, error.status, str(error)) or error.reply

    async def on_invalid(request: Request, error: Exception) -> Response:
        assert isinstance(error, RequestValidationError)
        first = error.errors()[0]
        field = ".".join(str(part) for part in first["loc"] if part not in ("body", "query", "path")) or "body"
        return JsonReply({"error": str(first["msg"]), "field": field, "value": shown(first.get("input"))}, 422)

    async def on_http(request: Request, error: Exception) -> Response:
        assert isinstance(error, HTTPException)
        headers = dict(error.headers or {})
        page = pages.missing(request.headers, error.status_code, "There is no page at this address.")
        return page or JsonReply(
            {"error": str(error.detail), "field": None, "value": request.scope["path"][:200]},
            error.status_code,
            headers,
        )

    async def on_library(request: Request, error: Exception) -> Response:
        failure = failure_of(error)
        return JsonReply(failure["body"], failure["status"])

    handle(Refusal, on_refusal)
    handle(RequestValidationError, on_invalid)
    handle(HTTPException, on_http)
    handle(StrettoError, on_library)
