"""Worker processes of the server: lent to one job at a time, ended when the job is cancelled, and replaced."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from stretto.core.host.child_python import python_environment, python_words
from stretto.reports.page.view_types import JsonObject
from stretto.web.replies import Refusal
from stretto.web.worker import ERROR, HEADER, NEWS

#: A worker is replaced after so many pieces of work, so that what leaks does not add up.
_MAX_USES = 100
_BUFFER_BYTES = 1 << 20


class ServerWorker:
    """One process and the pipes to it."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self.process = process
        self.uses = 0
        self._is_broken = False

    @staticmethod
    async def start(runs_path: str, max_memory_bytes: int) -> ServerWorker:
        """Start a process; it gets ready while nobody waits for it."""
        words = python_words("-m", "stretto.web.worker", runs_path, str(max_memory_bytes))
        pipe = asyncio.subprocess.PIPE
        return ServerWorker(
            await asyncio.create_subprocess_exec(
                *words,
                stdin=pipe,
                stdout=pipe,
                limit=_BUFFER_BYTES,
                start_new_session=True,
                env=python_environment(),
            )
        )

    async def do(self, request: JsonObject, on_news: Callable[[JsonObject], None]) -> bytes:
        """Hand over a request and return the answer; raise a refusal where the work failed."""
        self.uses += 1
        reader, writer = self.process.stdout, self.process.stdin
        assert reader is not None
        assert writer is not None
        data = json.dumps(request).encode()
        try:
            writer.write(HEADER.pack(b"q", len(data)) + data)
            await writer.drain()
            while True:
                kind, length = HEADER.unpack(await reader.readexactly(HEADER.size))
                content = await reader.readexactly(length)
                if kind != NEWS:
                    break
                on_news(json.loads(content))
        except (asyncio.IncompleteReadError, ConnectionError):
            self._is_broken = True  # its end may not have been noticed yet
            raise Refusal(422, "the worker process died; it may have run out of memory") from None
        if kind == ERROR:
            failure = json.loads(content)
            raise Refusal(failure["status"], **failure["body"])
        return content

    @property
    def is_fit(self) -> bool:
        """Whether it can take more work."""
        return self.process.returncode is None and not self._is_broken and self.uses < _MAX_USES

    async def end(self) -> None:
        """End the process now, whatever it does, and leave nothing of it behind."""
        with contextlib.suppress(ProcessLookupError):
            self.process.kill()
        await self.process.wait()


class WorkerPool:
    """So many workers, kept ready."""

    def __init__(self, size: int, runs_path: str, max_memory_bytes: int) -> None:
        self.size = size
        self._place = (runs_path, max_memory_bytes)
        self._free: list[ServerWorker] = []
        self._all: set[ServerWorker] = set()
        self._places = asyncio.Semaphore(size)

    @property
    def num_busy(self) -> int:
        return len(self._all) - len(self._free)

    async def open(self) -> None:
        """Start all workers."""
        for _ in range(self.size):
            self._free.append(await self._new())

    async def close(self) -> None:
        """End all workers."""
        for worker in list(self._all):
            await worker.end()
        self._all.clear()
        self._free.clear()

    @asynccontextmanager
    async def worker(self) -> AsyncIterator[ServerWorker]:
        """Lend a worker; one that was interrupted in its work is ended, and another takes its place."""
        async with self._places:
            while self._free and not self._free[-1].is_fit:
                await self._drop(self._free.pop())
            worker = self._free.pop() if self._free else await self._new()
            try:
                yield worker
            except (asyncio.CancelledError, TimeoutError):
                await asyncio.shield(self._drop(worker))
                raise
            finally:
                if worker in self._all:
                    if worker.is_fit:
                        self._free.append(worker)
                    else:
                        await asyncio.shield(self._drop(worker))

    async def _new(self) -> ServerWorker:
        worker = await ServerWorker.start(*self._place)
        self._all.add(worker)
        return worker

    async def _drop(self, worker: ServerWorker) -> None:
        self._all.discard(worker)
        await worker.end()
