"""The dashboard's pages and files, out of the package and nowhere else."""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from typing import Annotated
from urllib.parse import parse_qs

from fastapi import APIRouter, Query, Request
from starlette.responses import RedirectResponse, Response

from stretto.web.guard import COOKIE, Tokens
from stretto.web.replies import Refusal

router = APIRouter(include_in_schema=False)
_KINDS = {"js": "text/javascript", "css": "text/css", "svg": "image/svg+xml", "html": "text/html"}
#: Every file that is served, and the package that holds it.
STATIC = {
    "page.css": "stretto.reports.assets",
    "base.js": "stretto.reports.assets",
    "lines.js": "stretto.reports.assets",
    "gantt.js": "stretto.reports.assets",
    "map.js": "stretto.reports.assets",
    "placement.js": "stretto.reports.assets",
    "tables.js": "stretto.reports.assets",
    "sections.js": "stretto.reports.assets",
    "dashboard.css": "stretto.web.static",
    "shell.js": "stretto.web.static",
    "runs.js": "stretto.web.static",
    "ask.js": "stretto.web.static",
    "run.js": "stretto.web.static",
    "api.js": "stretto.web.static",
    "icon.svg": "stretto.web.static",
}


@cache
def packaged(package: str, name: str) -> bytes:
    """Return a file of a package."""
    parent, _, folder = package.rpartition(".")
    return files(parent).joinpath(folder, name).read_bytes()


def _page(name: str, status: int = 200) -> Response:
    return Response(packaged("stretto.web.static", name), status, media_type="text/html")


@router.get("/")
def runs_page() -> Response:
    """Show the list of runs."""
    return _page("runs.html")


@router.get("/runs/{run_id}")
def run_page(run_id: str) -> Response:
    """Show one run; the script finds out which from the address."""
    return _page("run.html")


@router.get("/api")
def api_page() -> Response:
    """Show what programs may ask for."""
    return _page("api.html")


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
        return _with_cookie(_page("opened.html"), tokens)
    if tokens.admits(request.headers):
        return RedirectResponse("/", 303)
    return _login(401, "This link has been used, or is too old. Type the token, or start the server again.")


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
        return _login(401, "This is not the token of this server.")
    # Only a path of this server: //elsewhere would lead away.
    target = next if next.startswith("/") and not next.startswith(("//", "/\\")) else "/"
    return _with_cookie(RedirectResponse(target, 303), tokens)


def _login(status: int = 200, notice: str = "") -> Response:
    page = packaged("stretto.web.static", "login.html")
    shown = f'<p class="error" role="alert">{notice}</p>'.encode() if notice else b""
    return Response(page.replace(b"<!-- notice -->", shown), status, media_type="text/html")


def _with_cookie(reply: Response, tokens: Tokens) -> Response:
    reply.set_cookie(COOKIE, tokens.session, max_age=30 * 86400, httponly=True, samesite="strict")
    return reply
