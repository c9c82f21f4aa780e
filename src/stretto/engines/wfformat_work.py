"""The commands that a WfFormat file records, as work that can be run."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import Any

from stretto.core.graph import TaskGraph
from stretto.engines.work import Command, Work
from stretto.errors import InvalidInput
from stretto.files.document import Document, read_document
from stretto.files.graphs.wfformat import COMMANDS, FORMAT


def has_commands(source: str) -> bool:
    """Say whether a file is WfFormat with a command for some task; never raises."""
    if not Path(source).is_file():
        return False
    try:
        document = read_document(source)
        return FORMAT.matches(document) and b'"program"' in document.data
    except InvalidInput:
        return False


def load_wfformat_work(source: str) -> Work:
    """Read a WfFormat file with its commands; they run in the directory of the file.

    A program that is a text of several words and has no arguments is run by a shell, as recorders write scripts so.
    """
    document = read_document(source)
    if not FORMAT.matches(document):
        document.fail("is not WfFormat: only its files record commands", field="commands")
    graph = FORMAT.read(document)
    entries = _entries(document.json["workflow"])
    home = str(Path(source).resolve().parent)
    actions = tuple(_command(document, graph, entries, task, home) for task in range(graph.num_tasks))
    return Work(graph, actions)


def with_commands(work: Work, folder: Path) -> TaskGraph:
    """Return the graph of some work with its commands, for a WfFormat file in a folder, where they will run."""
    rows = []
    for action in work.actions:
        assert isinstance(action, Command), "a workflow file has commands only"
        if action.cwd is None or Path(action.cwd).resolve() == folder.resolve():
            rows.append(list(action.argv))
        else:
            rows.append(["/bin/sh", "-c", f"cd {shlex.quote(action.cwd)} && exec {shlex.join(action.argv)}"])
    return work.graph.with_meta(**{COMMANDS: rows})


def _entries(workflow: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Return what the file says of each task, by the name that the graph has for it."""
    if "specification" not in workflow:
        rows = workflow.get("tasks", workflow.get("jobs", []))
        return {str(row.get("name", row.get("id"))): row for row in rows}
    told = {str(row["id"]): dict(row) for row in workflow["specification"]["tasks"]}
    for row in workflow.get("execution", {}).get("tasks", []):
        told.setdefault(str(row["id"]), {})["command"] = row.get("command")
    return told


def _command(document: Document, graph: TaskGraph, entries: dict[str, dict[str, Any]], task: int, home: str) -> Command:
    name = graph.task_name(task)
    row = entries.get(name, {})
    command = row.get("command")
    program = command.get("program") if isinstance(command, dict) else None
    if not isinstance(program, str) or not program.strip():
        document.fail("has no command, so it cannot be run", field=f"task {name!r}")
    arguments = command.get("arguments") or [] if isinstance(command, dict) else []
    if not isinstance(arguments, list) or not all(isinstance(word, str | int | float) for word in arguments):
        document.fail(f"arguments must be a list of words, not {arguments!r}", field=f"task {name!r}")
    is_script = not arguments and re.search(r"\s", program.strip()) is not None
    argv = ("/bin/sh", "-c", program) if is_script else (program, *(str(word) for word in arguments))
    return Command(argv, cwd=home, reads=_files(row, "input"), writes=_files(row, "output"))


def _files(row: dict[str, Any], link: str) -> tuple[str, ...]:
    if f"{link}Files" in row:
        return tuple(str(name) for name in row[f"{link}Files"] or [])
    files = row.get("files") or []
    return tuple(str(file.get("name", file.get("id"))) for file in files if str(file.get("link", "")).lower() == link)
