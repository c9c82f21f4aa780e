"""Damaged requests for every route of the server: ``python tests/trust/fuzzing/web_requests.py NUM_REQUESTS [SEED]``.

The server runs in this process without sockets, its workers are real. Any answer of 5xx, any that is not what it says
it is, and an exception is a crash: its request is printed, and the exit code is 1. What a damaged request starts is
done in a moment, or ended.
"""

from __future__ import annotations

import asyncio
import copy
import json
import random
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any, NamedTuple

from fastapi.routing import APIRoute
from fuzzing import web_seeds as seeds
from fuzzing.damage import damaged, spoiled

import stretto.web.pool
from stretto.web import pages, routes_jobs, routes_runs
from stretto.web.app import create_app
from stretto.web.settings import ServeSettings

_METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS", "TRACE", "MADE-UP", "")
#: A stream is left after its first piece; whatever else has no end by then is a crash.
_PATIENCE_S = 120.0


class Question(NamedTuple):
    """One request, as the server sees it."""

    method: str
    path: str
    query: bytes
    headers: list[tuple[bytes, bytes]]
    body: bytes


class Answer(NamedTuple):
    status: int
    kind: str
    body: bytes


class Asker:
    """Makes requests, right ones with one to four things wrong."""

    def __init__(self, routes: list[tuple[str, str]], ids: list[str], seed: int) -> None:
        self.routes = routes
        self.work = [(method, route) for method, route in routes if method == "POST" and route != "/login"]
        self.ids = ids
        self.rng = random.Random(seed)

    def question(self) -> Question:
        """Return the next request."""
        rng = self.rng
        method, route = rng.choice(self.routes if rng.randrange(3) else self.work)
        if rng.randrange(20) == 0:
            method = rng.choice(_METHODS)
        body = b""
        headers = {"host": "localhost"}
        if method == "POST" or rng.randrange(20) == 0:
            headers["content-type"] = "application/json"
            body = self._body(route)
        for name in rng.sample(list(seeds.HEADERS), rng.choice((0, 0, 0, 1, 2))):
            headers[name] = rng.choice(seeds.HEADERS[name])
        query = rng.choice(seeds.QUERIES)
        if rng.randrange(3) == 0:
            query = damaged(query, rng)[:2000]
        raw = [(name.encode(), value.encode("latin-1")) for name, value in headers.items()]
        return Question(method, self._path(route), query, raw, body)

    def _path(self, route: str) -> str:
        rng = self.rng
        parts = []
        for part in route.split("/"):
            if part.startswith("{") or rng.randrange(60) == 0:
                part = rng.choice((*self.ids, "latest", self.ids[0][:8], "0" * 12, "runs.js", "3", "task-1"))
                if rng.randrange(3) == 0:
                    part = damaged(part.encode(), rng)[:300].decode("utf-8", "replace")
            parts.append(part)
        return "/".join(parts)

    def _body(self, route: str) -> bytes:
        rng = self.rng
        body = copy.deepcopy(rng.choice(seeds.bodies(route)))
        if rng.randrange(3) == 0:
            return damaged(json.dumps(body).encode(), rng)
        for _ in range(rng.choice((0, 1, 1, 2, 3))):
            spoiled(body, rng)
        return json.dumps(body).encode()


async def ask(app: Any, question: Question) -> Answer:
    """Have the server answer; a stream is left after its first piece."""
    status, kind, parts, is_left = 0, "", [], asyncio.Event()
    given = [{"type": "http.request", "body": question.body, "more_body": False}]

    async def receive() -> dict[str, Any]:
        if given:
            return given.pop()
        await is_left.wait()
        return {"type": "http.disconnect"}

    async def send(message: Any) -> None:
        nonlocal status, kind
        if message["type"] == "http.response.start":
            status = message["status"]
            kind = dict(message["headers"]).get(b"content-type", b"").decode()
            is_packed = b"content-encoding" in dict(message["headers"])
            kind = "packed" if is_packed else kind
        else:
            parts.append(message.get("body", b""))
            if message.get("more_body") and kind.startswith("text/event-stream"):
                is_left.set()

    scope = {"type": "http", "asgi": {"version": "3.0"}, "http_version": "1.1", "scheme": "http", "root_path": ""}
    scope |= {"method": question.method, "path": question.path, "raw_path": question.path.encode(errors="replace")}
    scope |= {"query_string": question.query, "headers": question.headers, "client": ("127.0.0.1", 5)}
    async with asyncio.timeout(_PATIENCE_S):
        await app(scope, receive, send)
    return Answer(status, kind, b"".join(parts))


def fault(question: Question, answer: Answer) -> str | None:
    """Return what is wrong with an answer."""
    if not 200 <= answer.status < 500:
        return f"a status of {answer.status}"
    if answer.kind.startswith("application/json") and question.method != "HEAD" and answer.status != 304:
        try:
            found = json.loads(answer.body)
        except ValueError:
            return f"not JSON: {answer.body[:100]!r}"
        if answer.status >= 400 and "error" not in found:
            return f"an error without words: {answer.body[:100]!r}"
    return None


def all_routes() -> list[tuple[str, str]]:
    """Return every method and path that the server knows."""
    found = {("GET", "/openapi.json"), ("GET", "/no/such/page")}
    for router in (routes_jobs.router, routes_runs.router, pages.router):
        for route in router.routes:
            assert isinstance(route, APIRoute)
            found |= {(method, route.path) for method in route.methods}
    return sorted(found)


async def fuzz(num_requests: int, seed: int, folder: Path) -> int:
    """Ask so many requests; return how many crashed."""
    # A worker that is replaced so often as in earnest would be all that takes time.
    stretto.web.pool._MAX_USES = 2000  # type: ignore[attr-defined]
    ids = seeds.record(folder / "runs.db")
    limits = {"rate_per_s": 1e9, "burst": 10**9, "max_job_s": 5.0, "max_memory_bytes": 4 * 2**30}
    app = create_app(ServeSettings(runs_path=folder / "runs.db", num_workers=1, **limits))  # type: ignore[arg-type]
    routes = all_routes()
    asker, tally, kinds = Asker(routes, ids, seed), Counter[str](), Counter[str]()
    num_crashes, begin = 0, time.monotonic()
    async with app.router.lifespan_context(app):
        for number in range(1, num_requests + 1):
            question = asker.question()
            try:
                answer = await ask(app, question)
                wrong = fault(question, answer)
                tally[str(answer.status)] += 1
            except Exception as error:  # whatever it is, a client would have seen a 500
                wrong = f"{type(error).__name__}: {error}"
            if wrong is not None:
                num_crashes += 1
                kinds[wrong[:60]] += 1
            if wrong is not None and kinds[wrong[:60]] == 1:
                print(f"{wrong}\n    on {question._replace(body=question.body[:3000])!r}", flush=True)
            if number % 5000 == 0:
                print(f"{number:,} requests, {time.monotonic() - begin:.0f} s, {num_crashes} crashes", flush=True)
            if len(kinds) >= 20:
                break
    print(json.dumps({"requests": sum(tally.values()), "routes": len(routes), "crashes": num_crashes, **tally}))
    return num_crashes


def main() -> int:
    num_requests, seed = int(sys.argv[1]), int((sys.argv[2:] or ["0"])[0])
    with tempfile.TemporaryDirectory() as folder:
        return 1 if asyncio.run(fuzz(num_requests, seed, Path(folder))) else 0


if __name__ == "__main__":
    sys.exit(main())
