"""Checks before every request: origin, token, rate and size."""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import time
from collections import OrderedDict
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from http.cookies import CookieError, SimpleCookie
from urllib.parse import quote

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import RedirectResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from stretto.web.replies import Refusal
from stretto.web.settings import ServeSettings, is_loopback

COOKIE = "stretto_session"
#: Nothing on a page comes from elsewhere, and nothing runs that is not a file of ours.
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
PROTECTIVE_HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "same-origin",  # without any, browsers say "Origin: null" of our own forms
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), microphone=(), geolocation=()",
}
_FORM = "application/x-www-form-urlencoded"
_OPEN = ("/static/", "/login", "/api/health")
#: A token and no more: whoever sends this has not shown who it is.
_MAX_OPEN_BODY_BYTES = 4096
#: Bodies of all requests that are under way, in multiples of the largest that one may have.
_MAX_BODIES = 2
_CHANGES = frozenset({"POST", "PUT", "PATCH", "DELETE"})
#: Clients whose rate is remembered.
_MAX_CLIENTS = 10_000


class Rates:
    """A bucket of requests for each client, that fills again with time."""

    def __init__(self, per_s: float, burst: int) -> None:
        self.per_s = per_s
        self.burst = burst
        self._left: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def wait_s(self, client: str, now_s: float) -> float:
        """Take one request out of a client's bucket; return how long to wait where it is empty, else zero."""
        left, at_s = self._left.pop(client, (float(self.burst), now_s))
        left = min(float(self.burst), left + (now_s - at_s) * self.per_s)
        wait = 0.0 if left >= 1.0 else (1.0 - left) / self.per_s
        self._left[client] = (left - 1.0 if wait == 0.0 else left, now_s)
        if len(self._left) > _MAX_CLIENTS:
            self._left.popitem(last=False)
        return wait


class Tokens:
    """Compares what clients show with the token, in constant time."""

    def __init__(self, token: str) -> None:
        self._token = token.encode()
        self.session = hmac.new(self._token, b"stretto session", hashlib.sha256).hexdigest()

    def is_right(self, shown: str) -> bool:
        return hmac.compare_digest(shown.encode(errors="replace"), self._token)

    def admits(self, headers: Headers) -> bool:
        """Say whether a request shows the token, or the cookie that stands for it."""
        scheme, _, shown = headers.get("authorization", "").partition(" ")
        if scheme.lower() == "bearer":
            return self.is_right(shown.strip())
        try:
            cookie = SimpleCookie(headers.get("cookie", "")).get(COOKIE)
        except CookieError:
            return False
        return cookie is not None and hmac.compare_digest(cookie.value.encode(), self.session.encode())


class RequestGuard:
    """The outermost layer of the server."""

    def __init__(self, app: ASGIApp, settings: ServeSettings, tokens: Tokens | None) -> None:
        self.app = app
        self.settings = settings
        self.tokens = tokens
        self.rates = Rates(settings.rate_per_s, settings.burst)
        self._num_body_bytes = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let a request through, or answer it."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in PROTECTIVE_HEADERS.items():
                    headers.setdefault(name, value)
                headers.setdefault("Cache-Control", "no-store")
            await send(message)

        headers = Headers(scope=scope)
        try:
            self._check(scope, headers)
            if not self._is_admitted(scope["path"], headers):
                await self._turn_away(scope, receive, send_with_headers)
                return
            async with self._body(scope, headers, receive) as body:
                await self.app(scope, _again(body, receive), send_with_headers)
        except Refusal as refusal:
            await refusal.reply(scope, receive, send_with_headers)

    def _check(self, scope: Scope, headers: Headers) -> None:
        client = scope["client"][0] if scope.get("client") else "?"
        wait_s = self.rates.wait_s(client, time.monotonic())
        if wait_s > 0:
            seconds = str(int(wait_s) + 1)
            raise Refusal(429, "too many requests", headers={"Retry-After": seconds})
        host = headers.get("host", "")
        name = host.rsplit(":", 1)[0] if not host.endswith("]") else host
        # A page of another site that has its name point here (DNS rebinding) still says its own name.
        if is_loopback(self.settings.host) and not is_loopback(name):
            raise Refusal(403, "the Host header must name this machine, for example localhost", "Host", host)
        # What is behind it decodes addresses without looking.
        if not scope["query_string"].isascii():
            raise Refusal(400, "an address has ASCII letters only; write others as %XX", "query")
        if scope["method"] not in _CHANGES:
            return
        origin = headers.get("origin")
        if origin is not None and origin.partition("://")[2] != host:
            raise Refusal(403, "requests from other sites are refused", "Origin", origin)
        if headers.get("sec-fetch-site", "same-origin") not in ("same-origin", "none"):
            raise Refusal(403, "requests from other sites are refused", "Sec-Fetch-Site", headers["sec-fetch-site"])

    def _is_admitted(self, path: str, headers: Headers) -> bool:
        return self.tokens is None or path.startswith(_OPEN) or self.tokens.admits(headers)

    async def _turn_away(self, scope: Scope, receive: Receive, send: Send) -> None:
        path = scope["path"]
        if path.startswith("/api/") or path in ("/metrics", "/openapi.json"):
            headers = {"WWW-Authenticate": "Bearer"}
            await Refusal(401, "the token is missing or wrong", "Authorization", headers=headers).reply(
                scope, receive, send
            )
        else:
            await RedirectResponse(f"/login?next={quote(path, safe='')}", 303)(scope, receive, send)

    @asynccontextmanager
    async def _body(self, scope: Scope, headers: Headers, receive: Receive) -> AsyncIterator[bytes]:
        """Read the body, all of it, within its limits; its bytes count as long as the request is under way."""
        if scope["method"] not in _CHANGES:
            yield b""
            return
        is_login = scope["path"].startswith(_OPEN)
        limit = min(self.settings.max_body_bytes, _MAX_OPEN_BODY_BYTES if is_login else self.settings.max_body_bytes)
        told = headers.get("content-length", "")
        if told.isdecimal() and int(told[:18]) > limit:
            raise Refusal(
                413, f"the request has {int(told[:18]):,} bytes, and may have {limit:,}", "Content-Length", told
            )
        parts: list[bytes] = []
        try:
            await self._collect(parts, receive, limit)
            body = b"".join(parts)
            parts[:] = [body]  # held once
            kind = headers.get("content-type", "").partition(";")[0].strip().lower()
            wanted = _FORM if is_login else "application/json"
            if body and kind != wanted:
                raise Refusal(415, f"send {wanted}", "Content-Type", kind)
            yield body
        finally:
            self._num_body_bytes -= sum(map(len, parts))

    async def _collect(self, parts: list[bytes], receive: Receive, limit: int) -> None:
        size, has_more = 0, True
        try:
            async with asyncio.timeout(self.settings.max_body_s):
                while has_more:
                    message = await receive()
                    if message["type"] == "http.disconnect":
                        raise Refusal(400, "the request ended early")
                    parts.append(message.get("body", b""))
                    size += len(parts[-1])
                    self._num_body_bytes += len(parts[-1])
                    has_more = message.get("more_body", False)
                    if size > limit:
                        raise Refusal(413, f"the request has more than {limit:,} bytes", "body")
                    if self._num_body_bytes > _MAX_BODIES * self.settings.max_body_bytes:
                        raise Refusal(429, "too many large requests at once", "body", headers={"Retry-After": "5"})
        except TimeoutError:
            raise Refusal(408, f"the request took longer than {self.settings.max_body_s:g} s to arrive") from None


def _again(body: bytes, receive: Receive) -> Receive:
    """Return a channel that gives the body that was read, and then what follows it."""
    is_given = False

    async def give() -> Message:
        nonlocal is_given
        if is_given:
            return await receive()
        is_given = True
        return {"type": "http.request", "body": body, "more_body": False}

    return give
