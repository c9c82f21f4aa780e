"""Who may use ``stretto serve``: the token that it keeps for its user, and the link that logs a browser in once."""

from __future__ import annotations

import atexit
import html
import os
import secrets
import shutil
import stat
import sys
import tempfile
import threading
import webbrowser
from pathlib import Path

from stretto.core.host.private_files import make_private_folder, write_private
from stretto.errors import InvalidInput

#: A shorter one was not written by us, or not to its end.
_MIN_LETTERS = 32
_PAGE = '<!DOCTYPE html><title>Stretto</title><meta http-equiv="refresh" content="0; url={link}">'


def token_path(runs: Path) -> Path:
    """Return the file that keeps the token of the servers of a run log."""
    return runs.with_name(f"{runs.name}-token")


def kept_token(runs: Path) -> str:
    """Return the token of the servers of a run log; make one where there is none that only we can have read.

    It stays the same from one server to the next, so that browsers stay logged in and programs need not be told anew.
    """
    path = token_path(runs)
    try:
        return _read(path) or _make(path)
    except OSError as error:
        raise InvalidInput(f"cannot keep a token: {error.strerror}", source=str(path), field="--token-file") from None


def _read(path: Path) -> str | None:
    try:
        with path.open(encoding="utf-8") as file:
            found = os.fstat(file.fileno())
            token = file.read(1000).strip()
    except (FileNotFoundError, UnicodeDecodeError):
        return None
    is_ours = found.st_uid == os.geteuid() and not found.st_mode & (stat.S_IRWXG | stat.S_IRWXO)
    return token if is_ours and len(token) >= _MIN_LETTERS else None


def _make(path: Path) -> str:
    if not path.parent.exists():
        make_private_folder(path.parent)
    path.unlink(missing_ok=True)
    token = secrets.token_urlsafe(32)
    draft = path.with_name(f"{path.name}.{os.getpid()}")
    write_private(draft, token + "\n")
    try:
        os.link(draft, path)  # whole or not at all; and where another server was quicker, its token is the one
    except FileExistsError:
        return _read(path) or token
    finally:
        draft.unlink()
    return token


def can_open_browser() -> bool:
    """Say whether a person sits at this terminal and has a screen: text browsers would take the terminal over."""
    has_screen = sys.platform == "darwin" or bool(os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"))
    return sys.stdout.isatty() and has_screen


def open_browser(link: str) -> None:
    """Open a link in the browser, in the background.

    The browser is given a file that only its user can read: every user of the machine can read the words of a command,
    and would otherwise see the link.
    """
    threading.Thread(target=_open, args=(link,), daemon=True).start()


def _open(link: str) -> None:
    folder = Path(tempfile.mkdtemp(prefix="stretto-"))  # mode 0700
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    page = folder / "open.html"
    write_private(page, _PAGE.format(link=html.escape(link)))
    webbrowser.open(page.as_uri())
