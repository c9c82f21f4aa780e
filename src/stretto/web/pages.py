"""The pages of the dashboard and their files, all from the package."""

from __future__ import annotations

import html
from functools import cache
from importlib.resources import files
from typing import Annotated
from urllib.parse import parse_qs

from fastapi import APIRouter, Query, Request
from starlette.datastructures import Headers
from starlette.responses import RedirectResponse, Response

from stretto.errors import UnknownName
from stretto.reports.page.html import VIEW_SCRIPTS
from stretto.web.guard import COOKIE, Tokens
from stretto.web.replies import Refusal

router = APIRouter(include_in_schema=False)
_KINDS = {"js": "text/javascript", "css": "text/css", "svg": "image/svg+xml", "html": "text/html"}
_SHARED = ("page.css", *VIEW_SCRIPTS)
_OWN = ("dashboard.css", "shell.js", "runs.js", "start.js", "ask.js", "run.js", "compare.js", "api.js", "icon.svg")
#: Every file that is served, and the package that holds it.
STATIC = dict.fromkeys(_SHARED, "stretto.reports.assets") | dict.fromkeys(_OWN, "stretto.web.static")
#: Pages by the name of their body: title, and scripts in order.
_PAGES: dict[str, tuple[str, tuple[str, ...]]] = {
    "runs": ("Runs · Stretto", ("base.js", "shell.js", "runs.js", "start.js")),
    "run": ("Run · Stretto", ("base.js", "shell.js", *_SHARED[2:], "ask.js", "run.js")),
    "compare": ("Compare · Stretto", ("base.js", "shell.js", *_SHARED[2:], "compare.js")),
    "api": ("API · Stretto", ("base.js", "shell.js", "tables.js", "api.js")),
    "missing": ("Not found · Stretto", ("base.js", "shell.js")),
    "login": ("Token · Stretto", ()),
    "opened": ("Stretto", ()),
}
_HEAD = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>{title}</title>
<link rel="icon" href="/static/icon.svg">
<link rel="stylesheet" href="/static/page.css">
<link rel="stylesheet" href="/static/dashboard.css">
"""
_BAR = """<a class="skip" href="#main">Skip to content</a>
<header class="bar">
<a class="mark" href="/"><img src="/static/icon.svg" alt="" width="18" height="18">Stretto</a>
<nav aria-label="Main"><a href="/">Runs</a><a href="/docs">API</a></nav>
<button type="button" id="theme" aria-label="Switch between light and dark">Theme</button>
</header>
"""
_REFRESH = '<meta http-equiv="refresh" content="0; url=/">\n'


@cache
def packaged(package: str, name: str) -> bytes:
    """Return a file of a package."""
    parent, _, folder = package.rpartition(".")
    return files(parent).joinpath(folder, name).read_bytes()


@cache
def _document(name: str) -> str:
    """Return a page: its body, in the frame that all pages share."""
    title, scripts = _PAGES[name]
    body = packaged("stretto.web.static", f"{name}.html").decode()
    links = "".join(f'<script defer src="/static/{script}"></script>\n' for script in scripts)
    bar = _BAR.replace('href="/docs"', 'href="/docs" aria-current="page"') if name == "api" else _BAR
    bar = bar.replace('<a href="/">', '<a href="/" aria-current="page">') if name == "runs" else bar
    head = _HEAD.format(title=title) + (_REFRESH if name == "opened" else links)
    return f"{head}</head>\n<body>\n{bar if scripts else ''}{body}</body>\n</html>\n"


def _page(name: str, status: int = 200) -> Response:
    return Response(_document(name), status, media_type="text/html")


def missing(headers: Headers, status: int, reason: str) -> Response | None:
    """Return the page for an unknown address, None where a program asks and gets JSON."""
    if status != 404 or "text/html" not in headers.get("accept", ""):
        return None
    return Response(_document("missing").replace("<!-- reason -->", html.escape(reason)), 404, media_type="text/html")


@router.get("/")
def runs_page() -> Response:
    """Show the list of runs."""
    return _page("runs")


@router.get("/runs/{run_id}")
def run_page(request: Request, run_id: str) -> Response:
    """Show one run; the script finds out which from the address."""
    try:
        request.app.state.log.run(run_id)
    except UnknownName:
        raise Refusal(404, f"There is no run {run_id} in this log.", "run_id", run_id) from None
    return _page("run")


@router.get("/compare")
def compare_page() -> Response:
    """Show runs side by side; the script finds out which from the address."""
    return _page("compare")


@router.get("/docs")
@router.get("/api")
def api_page() -> Response:
    """Show what programs may ask for."""
    return _page("api")


@router.get("/static/{name}")
def static(name: str) -> Response:
    """Return a script, a style or a picture."""
    if name not in STATIC:
        raise Refusal(404, "there is no such file", "name", name)
    kind = _KINDS[name.rpartition(".")[2]]
    return Response(packaged(STATIC[name], name), media_type=kind, headers={"Cache-Control": "no-cache"})


@router.get("/login")
def login_page(request: Request, code: Annotated[str, Query(max_length=200)] = "") -> Response:
    """Ask for the token, or log a browser in that comes with the link of this server's start."""
    tokens = request.app.state.tokens
    if not code or tokens is None:
        return _login()
    if request.app.state.login_code.redeem(code):
        # A page and no redirect: after one that began elsewhere, browsers would not send the cookie along.
        return _with_cookie(_page("opened"), tokens)
    if tokens.admits(request.headers):
        return RedirectResponse("/", 303)
    return _login(401, "This link was already used or has expired. Enter the token, or restart the server.")


@router.post("/login")
async def login(request: Request, next: Annotated[str, Query(max_length=200)] = "/") -> Response:
    """Take the token, and give a cookie that stands for it."""
    tokens = request.app.state.tokens
    try:
        form = parse_qs((await request.body()).decode(), max_num_fields=4, errors="strict")
    except ValueError:
        raise Refusal(400, "send a form with the field token, in UTF-8", "body") from None
    shown = form.get("token", [""])[0]
    if tokens is None or not tokens.is_right(shown.strip()):
        if "text/html" not in request.headers.get("accept", ""):
            raise Refusal(401, "the token is missing or wrong", "token")
        return _login(401, "Wrong token.")
    # Only a path of this server: //elsewhere would lead away.
    target = next if next.startswith("/") and not next.startswith(("//", "/\\")) else "/"
    return _with_cookie(RedirectResponse(target, 303), tokens)


def _login(status: int = 200, notice: str = "") -> Response:
    shown = f'<p class="error" role="alert">{notice}</p>' if notice else ""
    return Response(_document("login").replace("<!-- notice -->", shown), status, media_type="text/html")


def _with_cookie(reply: Response, tokens: Tokens) -> Response:
    reply.set_cookie(COOKIE, tokens.session, max_age=30 * 86400, httponly=True, samesite="strict")
    return reply
