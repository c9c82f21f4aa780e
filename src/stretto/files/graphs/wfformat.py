"""WfFormat, the JSON of WfCommons: recorded workflow executions.

Reads schema versions 1.0 to 1.6 and writes 1.5. Up to 1.4 a task is one entry of
``workflow.tasks`` (``jobs`` before 1.3) and names others by name; from 1.5 on it is split over
``workflow.specification`` and ``workflow.execution`` and names others by id. Up to 1.3 memory is
in thousands of bytes and sizes and times have no unit in their keys.
"""

from __future__ import annotations

import json
import re

import numpy as np

from stretto.core.builder import GraphBuilder
from stretto.core.graph import TaskGraph
from stretto.core.magnitudes import CAPACITY_BYTES
from stretto.core.provenance import DURATIONS, RECORDED
from stretto.errors import InvalidInput
from stretto.files.document import Document
from stretto.files.graphs.filegraph import FileGraph
from stretto.files.sniff import graph_name, json_object

VERSIONS = ("1.0", "1.1", "1.2", "1.3", "1.4", "1.5", "1.6")
_KILO = 1000.0
_SERIAL = re.compile(r"(?:_ID\d+|[_-]?\d+)$")
_NOT_ID = re.compile(r"[^0-9A-Za-z_.-]")

Json = dict[str, object]

#: Key of ``TaskGraph.meta``: program and arguments of every task, which only this format holds.
COMMANDS = "commands"


class WfFormat:
    """Reads and writes one workflow per file."""

    summary = "WfCommons WfFormat JSON 1.0-1.6: workflow with files, runtimes and machines (writes 1.5)"
    endings = ("wfformat.json", "wf.json")

    def matches(self, document: Document) -> bool:
        root = json_object(document)
        return root is not None and "schemaVersion" in root and isinstance(root.get("workflow"), dict)

    def read(self, document: Document) -> TaskGraph:
        root = _dict(document, document.json, "document")
        version = str(root.get("schemaVersion"))[:20]
        if version not in VERSIONS:
            document.fail(f"version {version!r} is not one of {', '.join(VERSIONS)}", field="schemaVersion")
        workflow = _dict(document, root.get("workflow"), "workflow")
        build = GraphBuilder(graph_name(document))
        build.meta[DURATIONS] = RECORDED
        build.meta.update(format="wfformat", schema_version=version, workflow=root.get("name"))
        split = "specification" in workflow
        part = _SplitReader(document, build, workflow) if split else _FlatReader(document, build, workflow)
        part.read()
        return build.graph()

    def loses(self, graph: TaskGraph) -> tuple[str, ...]:
        """Say what of a graph this format cannot hold."""
        lost = []
        if graph.kinds:
            lost.append("durations per device kind (only the work on a device of speed 1 is kept)")
        if graph.resources is not None:
            lost.append("renewable resources")
        if graph.resident_bytes is not None or graph.weights is not None:
            lost.append("resident memory")
        return tuple(lost)

    def write(self, graph: TaskGraph) -> bytes:
        if graph.transfer_unit == "seconds":
            raise InvalidInput("the graph has transfer times instead of sizes; WfFormat holds only bytes")
        return json.dumps(_document(graph), indent=1).encode()


class _Reader:
    """What both shapes of the format share."""

    def __init__(self, document: Document, build: GraphBuilder, workflow: Json) -> None:
        self.document = document
        self.build = build
        self.workflow = workflow
        self.files = FileGraph(build)
        self.machine_memory: list[float] = []

    def machines(self, entries: object) -> None:
        """Keep the machines for information; their memory tells whether task memory is credible."""
        kept = []
        for place, machine in enumerate(_list(self.document, entries, "machines")):
            entry = _dict(self.document, machine, f"machines[{place}]")
            kept.append(entry)
            memory = entry.get("memoryInBytes", entry.get("memory"))
            if isinstance(memory, (int, float)) and 0 < memory < float("inf"):
                known = float(min(memory, CAPACITY_BYTES.most))  # an integer may exceed any float
                self.machine_memory.append(known if "memoryInBytes" in entry else known * _KILO)
        self.build.meta["machines"] = kept

    def memory(self, tasks: list[Json]) -> list[float]:
        """Return bytes per task, or zeros when they cannot be true.

        The schema asks for the resident set in bytes, but tracers have written other units.
        A task that needs more than the largest machine it could have run on gives this away.
        """
        values = []
        for task in tasks:
            kilo = "memoryInBytes" not in task
            value = task.get("memory" if kilo else "memoryInBytes")
            field = f"task {_label(task)}.memory"
            number = 0.0 if value is None else self.document.number(value, field, minimum=-np.inf)
            values.append(max(0.0, number) * (_KILO if kilo else 1.0))
        if self.machine_memory and values and max(values) > max(self.machine_memory):
            self.build.meta["memory_ignored"] = "tasks need more memory than any machine of the file has"
            return [0.0] * len(values)
        return values

    def number(self, task: Json, keys: tuple[str, ...], default: float | None = None) -> float:
        """Return the first of the task's keys that is there."""
        for key in keys:
            if task.get(key) is not None:
                return self.document.number(task[key], f"task {_label(task)}.{key}")
        if default is None:
            self.document.fail(f"there is no {' or '.join(keys)}", field=f"task {_label(task)}")
        return default

    def add(self, name: str, task: Json, memory_bytes: float, category: str) -> int:
        if name in self.build:
            self.document.fail("two tasks have this name", field=f"task {name}")
        return self.build.task(
            name,
            self.number(task, ("runtimeInSeconds", "runtime")),
            cores=self.number(task, ("coreCount", "cores"), 0.0),
            memory_bytes=memory_bytes,
            category=category,
        )

    def link(self, task: int, entry: Json, index: dict[str, int], name: str) -> None:
        """Add declared parents and children."""
        for key, is_parent in (("parents", True), ("children", False)):
            for place, other in enumerate(_list(self.document, entry.get(key), f"task {name}.{key}")):
                label = _text(self.document, other, f"task {name}.{key}[{place}]")
                if label not in index:
                    self.document.fail(f"unknown task {label!r}", field=f"task {name}.{key}")
                child, parent = (task, index[label]) if is_parent else (index[label], task)
                self.files.depends(child, parent)

    def read(self) -> None:
        raise NotImplementedError


class _SplitReader(_Reader):
    """Versions 1.5 and 1.6."""

    def read(self) -> None:
        document = self.document
        spec = _dict(document, self.workflow["specification"], "workflow.specification")
        execution = _dict(document, self.workflow.get("execution", {}), "workflow.execution")
        self.machines(execution.get("machines"))
        self.build.meta["makespan_s"] = execution.get("makespanInSeconds")
        tasks = _dicts(document, spec.get("tasks"), "workflow.specification.tasks")
        runs = {
            _text(document, run.get("id"), "workflow.execution.tasks.id"): run
            for run in _dicts(document, execution.get("tasks"), "workflow.execution.tasks")
        }
        names = [_text(document, task.get("id"), f"tasks[{i}].id") for i, task in enumerate(tasks)]
        for name in names:
            if name not in runs:
                document.fail("the task is not in workflow.execution, so its runtime is unknown", field=f"task {name}")
        self.build.meta["num_runs_without_task"] = len(runs.keys() - set(names))
        memory = self.memory([runs[name] for name in names])
        index = {
            name: self.add(name, runs[name], bytes_, _category(task, runs[name], name))
            for name, task, bytes_ in zip(names, tasks, memory, strict=True)
        }
        for file in _dicts(document, spec.get("files"), "workflow.specification.files"):
            label = _text(document, file.get("id"), "files.id")
            self.files.size(label, document.number(file.get("sizeInBytes"), f"file {label}.sizeInBytes"))
        for number, (name, task) in enumerate(zip(names, tasks, strict=True)):
            self.link(number, task, index, name)
            for file_id in _list(document, task.get("inputFiles"), f"task {name}.inputFiles"):
                self.files.reads(number, _text(document, file_id, f"task {name}.inputFiles"))
            for file_id in _list(document, task.get("outputFiles"), f"task {name}.outputFiles"):
                self.files.writes(number, _text(document, file_id, f"task {name}.outputFiles"))
        self.files.finish()


class _FlatReader(_Reader):
    """Versions 1.0 to 1.4."""

    def read(self) -> None:
        document = self.document
        self.machines(self.workflow.get("machines"))
        self.build.meta["makespan_s"] = self.workflow.get("makespanInSeconds", self.workflow.get("makespan"))
        key = "tasks" if "tasks" in self.workflow else "jobs"
        tasks = _dicts(document, self.workflow.get(key), f"workflow.{key}")
        memory = self.memory(tasks)
        index: dict[str, int] = {}
        aliases: dict[str, int] = {}
        for place, (task, bytes_) in enumerate(zip(tasks, memory, strict=True)):
            name = _text(document, task.get("name", task.get("id")), f"{key}[{place}].name")
            identity = task.get("id")
            if name in index and isinstance(identity, str) and identity:
                name = f"{name}_{identity}"  # names need not be unique where ids are
            index[name] = self.add(name, task, bytes_, _category(task, task, name))
            if isinstance(identity, str):
                aliases.setdefault(identity, index[name])
        everyone = aliases | index
        for number, (name, task) in enumerate(zip(index, tasks, strict=True)):
            self.link(number, task, everyone, name)
            self._files(number, task, name)
        self.files.finish()

    def _files(self, number: int, task: Json, name: str) -> None:
        document = self.document
        for file in _dicts(document, task.get("files"), f"task {name}.files"):
            label = _text(document, file.get("name", file.get("id")), f"task {name}.files.name")
            path = file.get("path")
            label = path + label if isinstance(path, str) else label
            size = file.get("sizeInBytes", file.get("size"))
            self.files.size(label, document.number(0 if size is None else size, f"file {label}.size"))
            if str(file.get("link", "")).lower() == "input":
                self.files.reads(number, label)
            else:
                self.files.writes(number, label)


def _category(task: Json, run: Json, name: str) -> str:
    """Return the declared category, else the program, else the name without its serial number."""
    if isinstance(task.get("category"), str) and task["category"]:
        return str(task["category"])
    command = run.get("command")
    program = command.get("program") if isinstance(command, dict) else None
    if isinstance(program, str) and program and not re.search(r"\s", program):
        return program.rstrip("/").rpartition("/")[2] or program
    label = task.get("name")
    return _SERIAL.sub("", label if isinstance(label, str) else name)


def _label(task: Json) -> str:
    return str(task.get("id", task.get("name", "?")))[:80]


def _dict(document: Document, value: object, field: str) -> Json:
    if not isinstance(value, dict):
        document.fail(f"{str(value)[:60]!r} is not an object", field=field)
    return value


def _list(document: Document, value: object, field: str) -> list[object]:
    if value is None:
        return []
    if not isinstance(value, list):
        document.fail(f"{str(value)[:60]!r} is not a list", field=field)
    return value


def _dicts(document: Document, value: object, field: str) -> list[Json]:
    return [_dict(document, item, f"{field}[{i}]") for i, item in enumerate(_list(document, value, field))]


def _text(document: Document, value: object, field: str) -> str:
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    if not isinstance(value, str) or not value:
        document.fail(f"{str(value)[:60]!r} is not a name", field=field)
    return value


def _document(graph: TaskGraph) -> Json:
    ids = _ids(graph)
    specification: list[Json] = []
    execution: list[Json] = []
    files: list[Json] = []
    file_of: dict[int, str] = {}
    for number in np.flatnonzero(graph.object_size > 0).tolist():
        file_of[number] = f"{ids[graph.object_task[number]]}.out{number - graph.out_ptr[graph.object_task[number]]}"
        files.append({"id": file_of[number], "sizeInBytes": round(float(graph.object_size[number]))})
    for task in range(graph.num_tasks):
        read = graph.in_object[graph.in_ptr[task] : graph.in_ptr[task + 1]].tolist()
        made = range(int(graph.out_ptr[task]), int(graph.out_ptr[task + 1]))
        readers = graph.object_reader[graph.object_ptr[made.start] : graph.object_ptr[made.stop]].tolist()
        # A category is no command: written as one, it would be run.
        category = graph.category_name(task) if graph.category is not None else ""
        specification.append(
            {
                "name": graph.task_name(task),
                **({"category": category} if category else {}),
                "id": ids[task],
                "parents": list(dict.fromkeys(ids[graph.object_task[o]] for o in read)),
                "children": list(dict.fromkeys(ids[reader] for reader in readers)),
                "inputFiles": list(dict.fromkeys(file_of[o] for o in read if o in file_of)),
                "outputFiles": [file_of[o] for o in made if o in file_of],
            }
        )
        execution.append(_run(graph, task, ids[task]))
    return {
        "name": graph.name,
        "description": "Written by Stretto",
        "schemaVersion": "1.5",
        "workflow": {
            "specification": {"tasks": specification, "files": files},
            "execution": {"makespanInSeconds": 0, "executedAt": "1970-01-01T00:00:00Z", "tasks": execution},
        },
    }


def _run(graph: TaskGraph, task: int, identity: str) -> Json:
    seconds = float(graph.work_s[task])
    if not np.isfinite(seconds):
        assert graph.kind_duration_s is not None  # only then may the work be infinite
        seconds = float(graph.kind_duration_s[task].min())
    if not np.isfinite(seconds):
        raise InvalidInput(
            "the task cannot run on any device, so it has no runtime", field=f"task {graph.task_name(task)!r}"
        )
    entry: Json = {"id": identity, "runtimeInSeconds": seconds}
    commands = graph.meta.get(COMMANDS)
    if isinstance(commands, (list, tuple)):
        program, *arguments = commands[task]
        entry["command"] = {"program": program, "arguments": arguments}
    if graph.cores is not None and graph.cores[task] > 0:
        entry["coreCount"] = float(graph.cores[task])
    if graph.memory_bytes is not None and graph.memory_bytes[task] > 0:
        entry["memoryInBytes"] = float(graph.memory_bytes[task])
    return entry


def _ids(graph: TaskGraph) -> list[str]:
    """Return the task names in the characters that the schema allows for ids, all different."""
    taken: dict[str, None] = {}
    for task in range(graph.num_tasks):
        base = identity = _NOT_ID.sub("_", graph.task_name(task)) or "task"
        if identity in taken:
            identity = f"{base}_{task}"
        while identity in taken:
            identity += "_"
        taken[identity] = None
    return list(taken)


FORMAT = WfFormat()
