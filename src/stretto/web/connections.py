"""Connections: how many there may be, and how long each may take to send a request or to read an answer.

uvicorn gives a client all the time it wants for the headers of a request. A few hundred clients that never finish
would hold every connection that the process may open, at no cost to them.
"""

from __future__ import annotations

import asyncio
import resource
import socket
import struct
from collections import Counter, OrderedDict

import h11
import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.server import ServerState

from stretto.reports.page.view_types import JsonObject
from stretto.web.guard import PROTECTIVE_HEADERS
from stretto.web.replies import Refusal
from stretto.web.settings import ServeSettings

_DISCARD = struct.pack("ii", 1, 0)


class Connections:
    """All connections of a server. Where there are too many, the one goes that has waited longest without a request."""

    def __init__(self, settings: ServeSettings) -> None:
        self.header_s = settings.max_header_s
        self.write_s = settings.max_write_s
        # The run log, the workers and the answers need files too.
        files = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
        self.limit = min(settings.max_connections, files // 2) if files > 0 else settings.max_connections
        self.client_limit = min(settings.max_connections_per_client, self.limit)
        self._per_client: Counter[str] = Counter()
        self._waiting: OrderedDict[Connection, None] = OrderedDict()

    def add(self, new: Connection) -> None:
        """Count a connection, and drop one where that makes too many."""
        self._per_client[new.address] += 1
        self.set_waiting(new, is_waiting=True)
        if self._per_client[new.address] > self.client_limit:
            self._drop_oldest(new.address)
        if self._per_client.total() > self.limit:
            self._drop_oldest(None)

    def remove(self, old: Connection) -> None:
        """Forget a connection that is closed or about to be."""
        if old.is_counted:
            old.is_counted = False
            self._waiting.pop(old, None)
            self._per_client[old.address] -= 1
            if not self._per_client[old.address]:
                del self._per_client[old.address]

    def set_waiting(self, connection: Connection, *, is_waiting: bool) -> None:
        """Note whether a connection waits for its client or its client waits for an answer."""
        if not is_waiting:
            self._waiting.pop(connection, None)
        elif connection.is_counted:
            self._waiting.setdefault(connection)

    def _drop_oldest(self, address: str | None) -> None:
        # The newest is among them: where all others are being answered, it is the one that goes.
        oldest = next(one for one in self._waiting if address is None or one.address == address)
        oldest.drop()


class Connection(H11Protocol):
    """uvicorn's connection, with an end to waiting."""

    def __init__(
        self,
        config: uvicorn.Config,
        server_state: ServerState,
        app_state: JsonObject,
        _loop: asyncio.AbstractEventLoop | None = None,
        *,
        pool: Connections,
    ) -> None:
        super().__init__(config, server_state, app_state, _loop)
        self.pool = pool
        self.address = "?"
        self.is_counted = True
        self._header_timer: asyncio.TimerHandle | None = None
        self._write_timer: asyncio.TimerHandle | None = None

    @property
    def is_answering(self) -> bool:
        """Whether a request has arrived that is not answered yet."""
        return self.cycle is not None and not self.cycle.response_complete

    @property
    def is_waiting(self) -> bool:
        """Whether the next move is the client's: to send the rest of a request, or to read what it was sent."""
        return not self.is_answering or self.cycle.more_body or self._write_timer is not None

    def drop(self) -> None:
        """Close the connection at once, whatever is still to be sent."""
        self.pool.remove(self)
        # Without this the kernel would keep what is unread, megabytes for each connection.
        self.transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _DISCARD)
        self.transport.abort()

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self.address = self.client[0] if self.client else "?"
        self._expect_request()
        self.pool.add(self)

    def connection_lost(self, exc: Exception | None) -> None:
        self.pool.remove(self)
        self._stop(self._header_timer)
        self._stop(self._write_timer)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._settle()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        self._settle()

    def _settle(self) -> None:
        """Keep the clock running as long as a request has begun to arrive and is not there."""
        self.pool.set_waiting(self, is_waiting=self.is_waiting)
        if self.is_answering:
            self._stop(self._header_timer)
            self._header_timer = None
        elif self._header_timer is None and self._has_part_of_request():
            self._expect_request()

    def _has_part_of_request(self) -> bool:
        is_rest_of_last = self.conn.their_state is h11.SEND_BODY  # which was answered before it was there
        return is_rest_of_last or bool(self.conn.trailing_data[0])

    def _expect_request(self) -> None:
        self._header_timer = self.loop.call_later(self.pool.header_s, self._give_up)

    def _give_up(self) -> None:
        if self.is_answering or self.transport.is_closing():
            return
        if self.conn.our_state is h11.IDLE:
            self._refuse(Refusal(408, f"the request took longer than {self.pool.header_s:g} s to arrive"))
        else:
            self.drop()

    def send_400_response(self, msg: str) -> None:
        """Answer what is not HTTP as everything else is answered: in JSON."""
        if self.conn.our_state in (h11.IDLE, h11.SEND_RESPONSE):
            self._refuse(Refusal(400, "not a valid HTTP request"))
        else:  # an answer is on its way: there is no place for another
            self.drop()

    def _refuse(self, refusal: Refusal) -> None:
        reply = refusal.reply
        fixed = {**PROTECTIVE_HEADERS, "Cache-Control": "no-store", "Connection": "close"}
        headers = [*reply.raw_headers, *((name.encode(), value.encode()) for name, value in fixed.items())]
        events = (
            h11.Response(status_code=refusal.status, headers=headers),
            h11.Data(data=bytes(reply.body)),
            h11.EndOfMessage(),
        )
        self.transport.write(b"".join(self.conn.send(event) or b"" for event in events))
        self.transport.close()

    def pause_writing(self) -> None:
        """Give the client some time to read before the answer is dropped: it may be large."""
        super().pause_writing()
        self._stop(self._write_timer)
        self._write_timer = self.loop.call_later(self.pool.write_s, self.drop)
        self._settle()

    def resume_writing(self) -> None:
        self._stop(self._write_timer)
        self._write_timer = None
        super().resume_writing()
        self._settle()

    @staticmethod
    def _stop(timer: asyncio.TimerHandle | None) -> None:
        if timer is not None:
            timer.cancel()
