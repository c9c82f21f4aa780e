"""STG, the Standard Task Graph set: one line per task with its time and predecessors.

The first number counts the tasks. In the random sets it leaves out the two dummies of no
length at the start and the end, in some application graphs it includes them; both are read,
and dummies stay in the graph as tasks of no length.
"""

from __future__ import annotations

from array import array
from typing import NamedTuple

import numpy as np

from stretto.core.graph import TaskGraph
from stretto.core.units import is_count
from stretto.errors import InvalidInput
from stretto.files.document import Document
from stretto.files.sniff import first_lines, graph_name


class Stg:
    """Reads and writes one graph per file."""

    summary = "STG, Standard Task Graph set: tasks with times and predecessors, no data sizes"
    endings = ("stg", "std")

    def matches(self, document: Document) -> bool:
        lines = first_lines(document, 2)
        if len(lines) < 2 or len(lines[0].split()) != 1 or not lines[0].isdigit():
            return False
        row = lines[1].split()
        return len(row) >= 3 and is_count(row[0]) and is_count(row[2]) and len(row) == 3 + int(row[2])

    def read(self, document: Document) -> TaskGraph:
        num_declared, rows = _rows(document)
        index: dict[str, int] = {}
        work: list[float] = []
        for row in rows:
            if row.name in index:
                document.fail("two tasks have this number", line=row.line, field=f"task {row.name}")
            index[row.name] = len(index)
            work.append(document.number(row.time, f"task {row.name}.time", line=row.line))
        if len(rows) not in (num_declared, num_declared + 2):
            document.fail(f"the file announces {num_declared} tasks and holds {len(rows)}", field="tasks")
        source, target = array("i"), array("i")
        for task, row in enumerate(rows):
            parents = _parents(document, row, index)
            source.extend(parents)
            target.extend([task] * len(parents))
        return _graph(document, tuple(index), work, source, target)

    def loses(self, graph: TaskGraph) -> tuple[str, ...]:
        """Say what of a graph this format cannot hold."""
        checks = {
            "data sizes": bool(np.any(graph.object_size > 0)),
            "task names": graph.task_names is not None and graph.task_names != _numbers(graph.num_tasks),
            "durations per device kind": bool(graph.kinds),
            "cores": graph.cores is not None,
            "memory": any(one is not None for one in (graph.memory_bytes, graph.resident_bytes, graph.weights)),
            "categories": graph.category is not None,
            "renewable resources": graph.resources is not None,
        }
        return tuple(what for what, is_lost in checks.items() if is_lost)

    def write(self, graph: TaskGraph) -> bytes:
        if not np.all(np.isfinite(graph.work_s)):
            task = int(np.argmax(~np.isfinite(graph.work_s)))
            raise InvalidInput("the task has no finite work", field=f"task {graph.task_name(task)!r}")
        num_announced = graph.num_tasks - 2 if _has_dummies(graph) else graph.num_tasks
        lines = [f"{num_announced:11d}"]
        for task in range(graph.num_tasks):
            read = graph.in_object[graph.in_ptr[task] : graph.in_ptr[task + 1]]
            parents = np.unique(graph.object_task[read]).tolist()
            time = float(graph.work_s[task])
            written = str(int(time)) if time.is_integer() else repr(time)
            lines.append(" ".join(f"{item:>10}" for item in (task, written, len(parents), *parents)))
        lines.append("# Written by Stretto")
        lines.extend(f"# lost: {what}" for what in self.loses(graph))
        return ("\n".join(lines) + "\n").encode()


class _Row(NamedTuple):
    """One task's line; the predecessors stay one text, because there may be millions."""

    line: int
    name: str
    time: str
    num_parents: str
    parents: str


def _rows(document: Document) -> tuple[int, list[_Row]]:
    """Return the announced number of tasks and the tasks' lines."""
    announced: int | None = None
    rows: list[_Row] = []
    for line, text in enumerate(document.text.splitlines(), start=1):
        words = text.partition("#")[0].split(None, 3)
        if not words:
            continue
        if announced is not None:
            if len(words) < 3:
                document.fail(f"expected number, time and predecessor count, got {' '.join(words)!r}", line=line)
            name, time, num_parents = words[:3]
            rows.append(_Row(line, name, time, num_parents, words[3] if len(words) > 3 else ""))
        elif len(words) == 1:
            announced = int(document.number(words[0], "tasks", line=line))
        else:
            document.fail(f"expected the number of tasks, got {text.strip()[:60]!r}", line=line)
    if announced is None:
        document.fail("the file is empty", field="tasks")
    return announced, rows


def _parents(document: Document, row: _Row, index: dict[str, int]) -> list[int]:
    """Return the indices of a task's predecessors."""
    names = row.parents.split()
    count = int(document.number(row.num_parents, f"task {row.name}.predecessors", line=row.line))
    if len(names) != count:
        document.fail(f"{count} predecessors announced, {len(names)} given", line=row.line, field=f"task {row.name}")
    try:
        return [index[name] for name in names]
    except KeyError as error:
        document.fail(f"unknown predecessor {error.args[0]!r}", line=row.line, field=f"task {row.name}")


def _graph(
    document: Document, names: tuple[str, ...], work: list[float], sources: array[int], targets: array[int]
) -> TaskGraph:
    """Make the graph; all successors of a task read its one empty object."""
    source, target = np.frombuffer(sources, dtype=np.int32), np.frombuffer(targets, dtype=np.int32)
    pair = np.sort(source.astype(np.int64) * max(len(names), 1) + target)
    pair = pair[np.diff(pair, prepend=-1) > 0]
    src, dst = np.divmod(pair, max(len(names), 1))
    is_first = np.diff(src, prepend=-1) > 0  # the pairs are sorted by source
    producers, read_object = src[is_first], np.cumsum(is_first) - 1
    try:
        return TaskGraph(
            name=graph_name(document),
            work_s=np.array(work, dtype=np.float64),
            object_task=producers.astype(np.int32),
            object_size=np.zeros(len(producers)),
            read_task=dst.astype(np.int32),
            read_object=read_object.astype(np.int32),
            task_names=names,
            meta={"format": "stg"},
        )
    except InvalidInput as error:
        raise error.at(document.name) from None


def _numbers(num_tasks: int) -> tuple[str, ...]:
    return tuple(str(task) for task in range(num_tasks))


def _has_dummies(graph: TaskGraph) -> bool:
    """Say whether the first and last tasks are the classic empty entry and exit."""
    last = graph.num_tasks - 1
    if last < 2 or graph.work_s[0] != 0 or graph.work_s[last] != 0:
        return False
    source, target, _ = graph.edges
    return not np.any(target == 0) and not np.any(source == last)


FORMAT = Stg()
