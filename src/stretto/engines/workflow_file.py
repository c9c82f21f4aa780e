"""Workflows of commands, as TOML: what to run, which files go in and out, and how long it might take.

A task waits for those named in ``after`` and for whoever ``writes`` a file that it ``reads``::

    name = "two steps"

    [[task]]
    name = "make"
    run = "seq 1000 > numbers"        # for /bin/sh; or argv = ["seq", "1000"]
    writes = ["numbers"]
    seconds = 2.0                      # what the planner believes, on a device of speed 1
    durations = { gpu = 0.5 }          # optionally by kind of device; inf = cannot run there

    [[task]]
    name = "add"
    argv = ["awk", "{ s += $1 } END { print s }", "numbers"]
    reads = ["numbers"]
    timeout = "10min"
    cores = 2                          # what it holds while it runs, on nodes that pack
    memory = "2GB"
    retries = 1                        # tried once more where it fails; by default as often as the run says
    container = "apptainer exec tools.sif"  # words before the command; at the top of the file for all tasks
"""

from __future__ import annotations

import os
import re
import shlex
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

from stretto.core.builder import GraphBuilder
from stretto.core.provenance import DURATIONS
from stretto.core.units import parse_bytes, parse_seconds
from stretto.engines.work import Command, Work
from stretto.errors import InvalidInput, UnknownName
from stretto.files.document import Document, read_document

#: What a task takes on a device of speed 1 where the file does not say.
DEFAULT_S = 1.0
_TASK_HEAD = re.compile(r"\s*\[\[\s*task\s*\]\]")
_TOP_KEYS = {"name", "cwd", "env", "container", "task"}
_EXAMPLES = {"timeout": "10min", "memory": "2GB"}
_TASK_KEYS = {
    *("name", "run", "argv", "after", "reads", "writes", "seconds", "durations"),
    *("timeout", "timeout_s", "cwd", "env", "bytes", "memory", "memory_bytes", "cores", "gpus", "retries", "container"),
}


def is_workflow(source: str) -> bool:
    """Say whether a source is a workflow of commands rather than a graph."""
    return source.endswith(".toml") and Path(source).is_file() and b"[[task]]" in read_document(source).data


def load_workflow(source: str | Path) -> Work:
    """Read a workflow; relative directories start at the file's own."""
    document = read_document(source)
    try:
        body = tomllib.loads(document.text)
    except (ValueError, RecursionError) as error:  # also of numbers with thousands of digits, and of endless brackets
        raise InvalidInput(f"is not valid TOML: {error}", source=document.name) from None
    rows = body.get("task")
    if not isinstance(rows, list) or not rows:
        document.fail("has no [[task]] table; a workflow needs at least one", field="task")
    _check_keys(document, body, _TOP_KEYS, "workflow")
    home = Path(source).resolve().parent / str(body.get("cwd", "."))
    builder = GraphBuilder(str(body.get("name", Path(source).stem)))
    commands = []
    for number, row in enumerate(rows):
        try:
            commands.append(_command(document, row, number, home, body))
            _add_task(document, builder, row, commands[-1])
        except InvalidInput as error:
            raise InvalidInput(
                error.message, source=document.name, line=error.line or _line(document, number), field=error.field
            ) from None
    written = _writers(document, rows, commands)
    for row, command in zip(rows, commands, strict=True):
        _add_edges(document, builder, row, command, written)
    builder.meta[DURATIONS] = _basis(rows)
    try:
        return Work(builder.graph(), tuple(commands))
    except InvalidInput as error:
        raise error.at(document.name) from None


def _basis(rows: list[dict[str, Any]]) -> str:
    """Say where the durations come from: the file's author, or the default where it states none."""
    silent = sum("seconds" not in row and "durations" not in row for row in rows)
    if silent == 0:
        return "estimated (by the workflow file)"
    which = f"{silent} of {len(rows)} tasks" if silent < len(rows) else "every task"
    return f"assumed ({DEFAULT_S:g} s for {which}: no seconds stated)"


def _line(document: Document, number: int) -> int | None:
    """Return the line where a task begins, None where tasks are not written as tables of their own."""
    heads = [at for at, line in enumerate(document.text.splitlines(), start=1) if _TASK_HEAD.match(line)]
    return heads[number] if number < len(heads) else None


def _check_keys(document: Document, table: dict[str, Any], known: set[str], where: str) -> None:
    for key in table:
        if key not in known:
            document.fail(str(UnknownName("key", key, known)), field=where)


def _command(document: Document, row: Any, number: int, home: Path, body: dict[str, Any]) -> Command:
    where = f"task {number + 1}"
    if not isinstance(row, dict) or not isinstance(row.get("name"), str):
        document.fail("needs a name", field=where)
    where = f"task {row['name']!r}"
    _check_keys(document, row, _TASK_KEYS, where)
    if ("run" in row) == ("argv" in row):
        document.fail("needs either run (a shell command) or argv (a list of words), not both", field=where)
    argv = ("/bin/sh", "-c", str(row["run"])) if "run" in row else _names(document, row, "argv", where)
    if not argv:
        document.fail("argv is empty", field=where)
    try:
        return _checked_command(document, row, argv, home, body, where)
    except InvalidInput as error:
        if error.source is not None:  # it knows its place
            raise
        document.fail(error.message, field=f"{where} {error.field or ''}".strip())


def _checked_command(
    document: Document, row: Any, argv: tuple[str, ...], home: Path, body: dict[str, Any], where: str
) -> Command:
    timeout_s = _quantity(document, row, "timeout", "timeout_s", parse_seconds, where)
    retries = row.get("retries")
    if retries is not None and (isinstance(retries, bool) or not isinstance(retries, int) or retries < 0):
        document.fail(f"retries must be a whole number from 0, not {retries!r}", field=where)
    prefix = _prefix(document, row if "container" in row else body, where)
    return Command(
        (*prefix, *argv),
        cwd=str(home / str(row.get("cwd", "."))),
        env={**_env(document, body, "workflow"), **_env(document, row, where)},
        reads=_names(document, row, "reads", where),
        writes=_names(document, row, "writes", where),
        timeout_s=timeout_s,
        max_attempts=None if retries is None else retries + 1,
    )


def _prefix(document: Document, table: dict[str, Any], where: str) -> tuple[str, ...]:
    """Return the words before a command, such as those that start a container."""
    found = table.get("container", [])
    if isinstance(found, str):
        try:
            return tuple(shlex.split(found))
        except ValueError as error:
            document.fail(f"container {found!r} cannot be split into words: {error}", field=where)
    return _names(document, table, "container", where)


def _quantity(
    document: Document,
    row: dict[str, Any],
    key: str,
    plain_key: str,
    parse: Callable[[str | float], float],
    where: str,
) -> float | None:
    """Return an amount that is written with its unit, or as a number under the key that names the unit."""
    if key in row and plain_key in row:
        document.fail(f"states both {key} and {plain_key}; one is enough", field=where)
    if key not in row:
        return None if row.get(plain_key) is None else document.number(row[plain_key], f"{where} {plain_key}")
    if not isinstance(row[key], str):
        document.fail(f"{key} = {row[key]!r} has no unit: write a text such as {_EXAMPLES[key]!r}", field=where)
    try:
        return parse(row[key])
    except InvalidInput as error:
        document.fail(error.message, field=f"{where} {key}")


def _env(document: Document, table: dict[str, Any], where: str) -> dict[str, str]:
    found = table.get("env", {})
    if not isinstance(found, dict):
        document.fail(f"env must be a table, not {found!r}", field=where)
    return {key: str(value) for key, value in found.items()}


def _names(document: Document, row: dict[str, Any], key: str, where: str) -> tuple[str, ...]:
    found = row.get(key, [])
    if not isinstance(found, list) or not all(isinstance(item, str) for item in found):
        document.fail(f"{key} must be a list of strings, not {found!r}", field=where)
    return tuple(found)


def _add_task(document: Document, builder: GraphBuilder, row: dict[str, Any], command: Command) -> None:
    where = f"task {row['name']!r}"
    durations = row.get("durations")
    if durations is not None and not isinstance(durations, dict):
        document.fail(f"durations must be a table of seconds by kind of device, not {durations!r}", field=where)
    try:
        builder.task(
            row["name"],
            document.number(row.get("seconds", DEFAULT_S), f"{where} seconds"),
            durations=None if durations is None else {kind: float(value) for kind, value in durations.items()},
            cores=document.number(row.get("cores", 0.0), f"{where} cores"),
            gpus=document.number(row.get("gpus", 0.0), f"{where} gpus"),
            memory_bytes=_quantity(document, row, "memory", "memory_bytes", parse_bytes, where) or 0.0,
            category=Path(command.argv[0]).name,
        )
    except InvalidInput as error:
        raise error.at(document.name) from None
    except (TypeError, ValueError):
        document.fail(f"durations must be numbers, not {durations!r}", field=where)


def _paths(command: Command, names: tuple[str, ...]) -> list[str]:
    """Return files of a command as paths that mean the same for every task."""
    return [os.path.normpath(os.path.join(command.cwd or ".", name)) for name in names]


def _writers(document: Document, rows: list[dict[str, Any]], commands: list[Command]) -> dict[str, dict[str, Any]]:
    """Return who writes each file; two tasks that write one would overwrite each other, in an order nobody knows."""
    found: dict[str, dict[str, Any]] = {}
    for row, command in zip(rows, commands, strict=True):
        for name, path in zip(command.writes, _paths(command, command.writes), strict=True):
            other = found.setdefault(path, row)
            if other is not row:
                document.fail(
                    f"writes {name!r}, which task {other['name']!r} writes, too: let each write its own file, and"
                    " join them in a later task",
                    field=f"task {row['name']!r}",
                )
    return found


def _add_edges(
    document: Document, builder: GraphBuilder, row: dict[str, Any], command: Command, written: dict[str, dict[str, Any]]
) -> None:
    where = f"task {row['name']!r}"
    task = builder.find(row["name"], wanted_by=where)
    parents = {
        written[path]["name"]: written[path].get("bytes", 0.0)
        for path in _paths(command, command.reads)
        if path in written
    }
    try:
        for name in _names(document, row, "after", where):
            parents.setdefault(name, 0.0)
        for name, size in parents.items():
            builder.edge(builder.find(name, wanted_by=where), task, document.number(size, f"task {name!r} bytes"))
    except InvalidInput as error:
        raise error.at(document.name) from None
