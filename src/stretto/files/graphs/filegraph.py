"""Workflows whose tasks read and write named files: turn files into objects.

One file is one object of its producer, whoever reads it. A dependency that no file
carries becomes an object of zero bytes, which moves nowhere.
"""

from __future__ import annotations

from collections.abc import Iterable

from stretto.core.builder import GraphBuilder


class FileGraph:
    """Collects who reads and writes which file, then adds the objects to a builder."""

    def __init__(self, build: GraphBuilder) -> None:
        self._build = build
        self._size: dict[str, float] = {}
        self._producers: dict[str, list[int]] = {}
        self._inputs: dict[int, dict[str, None]] = {}
        self._parents: dict[int, dict[int, None]] = {}

    def size(self, file: str, size_bytes: float) -> None:
        """Say how large a file is; when several places say so, the largest counts."""
        self._size[file] = max(size_bytes, self._size.get(file, 0.0))

    def writes(self, task: int, file: str) -> None:
        producers = self._producers.setdefault(file, [])
        if task not in producers:
            producers.append(task)

    def reads(self, task: int, file: str) -> None:
        self._inputs.setdefault(task, {})[file] = None

    def depends(self, child: int, parent: int) -> None:
        self._parents.setdefault(child, {})[parent] = None

    def finish(self) -> None:
        """Add objects and reads to the builder, and what was left out to its meta data."""
        handles: dict[tuple[str, int], int] = {}
        external: set[str] = set()
        carried: dict[int, set[int]] = {}
        for task, files in self._inputs.items():
            for file in files:
                producers = self._sources(task, file)
                if not producers and task not in self._producers.get(file, ()):
                    external.add(file)
                for producer in producers:
                    handle = handles.get((file, producer))
                    if handle is None:
                        handle = self._build.object(producer, self._size.get(file, 0.0))
                        handles[file, producer] = handle
                    self._build.read(task, handle)
                    carried.setdefault(task, set()).add(producer)
        self._precedences(carried)
        self._build.meta["num_external_files"] = len(external)
        self._build.meta["external_bytes"] = sum(self._size.get(file, 0.0) for file in external)

    def _sources(self, task: int, file: str) -> Iterable[int]:
        """Return who produced the file that a task reads.

        A file that several tasks write comes from those that are declared as parents, and
        from the first writer when none of them is.
        """
        others = [producer for producer in self._producers.get(file, ()) if producer != task]
        if len(others) <= 1:
            return others
        parents = self._parents.get(task, {})
        return [producer for producer in others if producer in parents] or others[:1]

    def _precedences(self, carried: dict[int, set[int]]) -> None:
        empty: dict[int, int] = {}
        for child, parents in self._parents.items():
            through_files = carried.get(child, set())
            for parent in parents:
                if parent in through_files:
                    continue
                if parent not in empty:
                    empty[parent] = self._build.object(parent, 0.0)
                self._build.read(child, empty[parent])
