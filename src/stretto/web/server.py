"""Listen, serve, stop."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable
from functools import partial
from typing import cast

import uvicorn

from stretto.errors import InvalidInput
from stretto.runlog import RunLog
from stretto.runlog.record import Json
from stretto.web.app import create_app
from stretto.web.connections import Connection, Connections
from stretto.web.memory import limit_arenas
from stretto.web.quiet_log import limit_log
from stretto.web.settings import ServeSettings

#: Longer than clients and proxies keep a connection that rests (5 to 60 s): then they close it, and never send into one
#: that was closed here a moment ago.
_KEEP_ALIVE_S = 75
#: asyncio accepts so many connections in one go, before any of them can be dropped.
_BACKLOG = 128


def serve(on_listening: Callable[[str], None], **values: Json) -> None:
    """Serve until interrupted.

    Parameters
    ----------
    on_listening
        Is told the address.
    values
        The fields of :class:`ServeSettings`.
    """
    settings = ServeSettings(**values)
    limit_arenas()
    RunLog.open(settings.runs_path).close()  # one that cannot be used is an error of one line here, and not later
    listener = _listen(settings)
    port = listener.getsockname()[1]
    host = f"[{settings.host}]" if ":" in settings.host else settings.host
    config = uvicorn.Config(
        create_app(settings),
        http=cast(type[asyncio.Protocol], partial(Connection, pool=Connections(settings))),
        ws="none",
        backlog=_BACKLOG,
        log_level="warning",
        access_log=False,
        server_header=False,
        proxy_headers=False,  # or a client could say that it is another one
        timeout_keep_alive=_KEEP_ALIVE_S,
        timeout_graceful_shutdown=2,
        h11_max_incomplete_event_size=64 * 1024,
    )
    limit_log()
    on_listening(f"http://{host}:{port}")
    try:
        uvicorn.Server(config).run(sockets=[listener])
    except KeyboardInterrupt:  # uvicorn has shut everything down by now
        pass
    finally:
        listener.close()


def _listen(settings: ServeSettings) -> socket.socket:
    try:
        family = socket.getaddrinfo(settings.host, settings.port, type=socket.SOCK_STREAM)[0][0]
        # Named as TCP, for asyncio switches Nagle's algorithm off (40 ms an answer) only where it knows that it is.
        listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((settings.host, settings.port))
        listener.listen(_BACKLOG)
    except (OSError, UnicodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise InvalidInput(
            f"cannot listen: {reason or error}", source=f"{settings.host}:{settings.port}", field="--port"
        ) from None
    listener.set_inheritable(True)
    return listener
