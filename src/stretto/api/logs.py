"""``stretto.logs``: what the commands of a run have written to stdout and stderr, while it runs and after."""

from __future__ import annotations

import base64
import gzip
import re
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from stretto.core.graph import TaskGraph
from stretto.engines.outputs import decode
from stretto.engines.session import GRAPH
from stretto.errors import InvalidInput, UnknownName
from stretto.files.document import Document
from stretto.files.graphs.native import FORMAT
from stretto.runlog import RunLog
from stretto.runlog.place import output_folder

Stream = Literal["stdout", "stderr"]
_STREAMS: dict[str, Stream] = {"out": "stdout", "err": "stderr"}
_FILE = re.compile(r"^(\d+)\.(\d+)\.(out|err)$")
_LOOK_S = 0.2
_CHUNK_BYTES = 1 << 20


@dataclass(frozen=True)
class LogPiece:
    """Some output of one attempt of a task, in the order in which it was written to that stream."""

    task: str
    attempt: int
    stream: Stream
    data: bytes

    @property
    def text(self) -> str:
        """The output as text; what is not UTF-8 is replaced."""
        return self.data.decode(errors="replace")


def logs(
    run: str = "latest", task: str | None = None, *, runs: str | Path | None = None, follow: bool = False
) -> Iterator[LogPiece]:
    """Return the output of the commands of a run, piece by piece.

    Parameters
    ----------
    run
        The id of a run, an unambiguous beginning of it, or ``latest``.
    task
        Only this task.
    runs
        The run log, by default your own.
    follow
        Wait for more until the run has ended.

    Examples
    --------
    >>> import stretto, tempfile, pathlib
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> _ = (folder / "flow.toml").write_text('[[task]]\\nname = "greet"\\nrun = "echo hello"\\n')
    >>> done = stretto.run(folder / "flow.toml", "cpu:1", record=stretto.Record(runs=folder / "runs.db"))
    >>> [piece.text for piece in stretto.logs(runs=folder / "runs.db")]
    ['hello\\n']
    """
    with RunLog.open(runs) as log:
        info = log.run(run)
        if info.kind != "run":
            raise InvalidInput(f"is a {info.kind!r}, which has no commands", field=f"run {info.id}")
        reader = _OutputReader(log, info.id, task)
        while True:
            is_over = log.run(info.id).status != "running"  # asked before reading: what comes later is not missed
            yield from reader.news()
            if is_over or not follow:
                break
            time.sleep(_LOOK_S)
        yield from reader.kept()


class _OutputReader:
    """Reads the output of a run's commands from where it stopped."""

    def __init__(self, log: RunLog, run_id: str, task: str | None) -> None:
        self.log, self.run_id, self.task = log, run_id, task
        self.folder = output_folder(log.path, run_id)
        self.names = self._names()
        if task is not None and task not in self.names:
            raise UnknownName("task", task, self.names)
        self._position: dict[str, int] = {}

    def _names(self) -> list[str]:
        data = self.log.artifact(self.run_id, GRAPH)
        if data is None:
            raise InvalidInput("has no graph in the run log", field=f"run {self.run_id}")
        graph = FORMAT.read(Document(f"run {self.run_id}", gzip.decompress(data)))
        assert isinstance(graph, TaskGraph)
        return [graph.task_name(number) for number in range(graph.num_tasks)]

    def news(self) -> Iterator[LogPiece]:
        """Return what was written since the last time."""
        for path in self._files():
            number, attempt, ending = _FILE.match(path.name).groups()  # type: ignore[union-attr]
            with open(path, "rb") as file:
                file.seek(self._position.setdefault(path.name, 0))
                while data := file.read(_CHUNK_BYTES):
                    self._position[path.name] += len(data)
                    yield LogPiece(self.names[int(number)], int(attempt), _STREAMS[ending], data)

    def _files(self) -> list[Path]:
        """Return the files of the wanted tasks, in the order in which they were begun."""
        found = []
        for path in self.folder.iterdir() if self.folder.is_dir() else ():
            match = _FILE.match(path.name)
            if match is not None and (self.task is None or self.names[int(match[1])] == self.task):
                found.append((path.stat().st_ctime_ns if self.task is None else 0, int(match[2]), path.name, path))
        return [path for *_, path in sorted(found)]

    def kept(self) -> Iterator[LogPiece]:
        """Return the stdout of tasks that ran elsewhere: what the run log has kept of it."""
        for event in self.log.events(self.run_id, kinds=["task-finished"]):
            attempt = int(event.fields.get("attempt", 1))
            if (self.task not in (None, event.subject)) or event.subject not in self.names:
                continue
            number = self.names.index(event.subject)
            if f"{number}.{attempt}.out" in self._position:
                continue
            value = decode(data) if (data := self._kept_data(event.fields, number)) is not None else None
            if isinstance(value, bytes) and value and not self._is_timed:
                yield LogPiece(event.subject, attempt, "stdout", value)

    def _kept_data(self, fields: object, number: int) -> bytes | None:
        assert isinstance(fields, dict)
        if "output" in fields:
            return base64.b64decode(fields["output"])
        return self.log.artifact(self.run_id, f"output-{number}") if fields.get("attached") else None

    @property
    def _is_timed(self) -> bool:
        return bool(self.log.run(self.run_id).settings.get("is_timed"))
