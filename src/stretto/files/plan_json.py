"""Plans as JSON: what ``stretto plan --output json`` writes, and what other tools may hand in.

``assignment`` says the device of each task and ``order`` lists all tasks; both take indices or
names. Where the file also lists its ``devices`` and ``tasks``, indices are indices into these
lists, so a plan made for the same devices in another order is still understood.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from stretto.core.csr import Ints
from stretto.core.plan import DISCIPLINES, Plan
from stretto.core.problem import Problem
from stretto.errors import UnknownName
from stretto.files.document import Document


def plan_to_json(plan: Plan, problem: Problem) -> dict[str, object]:
    """Return a plan as JSON values, by index, with the names that the indices mean."""
    body: dict[str, object] = {
        "discipline": plan.discipline,
        "assignment": plan.assignment.tolist(),
        "order": plan.order.tolist(),
        "devices": [device.name for device in problem.cluster.devices],
    }
    if problem.graph.task_names is not None:
        body["tasks"] = list(problem.graph.task_names)
    return body


def read_plan(document: Document, problem: Problem) -> Plan:
    """Read a plan for a problem; anything missing, doubled or unknown is an error.

    Keys that say nothing about the plan itself (policy, makespan, statistics) go to
    ``info`` untouched.
    """
    body = document.json
    if not isinstance(body, dict):
        document.fail("expected an object with assignment and order")
    devices = _Names(document, "device", [d.name for d in problem.cluster.devices], body.get("devices"), "devices")
    graph = problem.graph
    names = [graph.task_name(task) for task in range(graph.num_tasks)]
    tasks = _Names(document, "task", names, body.get("tasks"), "tasks")
    assignment = _assignment(document, body.get("assignment"), tasks, devices)
    order = _order(document, body.get("order"), tasks)
    discipline = body.get("discipline", "sequence")
    if discipline not in DISCIPLINES:
        document.fail(f"{discipline!r} is not one of {', '.join(DISCIPLINES)}", field="discipline")
    own = {"assignment", "order", "devices", "tasks", "discipline"}
    return Plan(assignment, order, discipline, {key: value for key, value in body.items() if key not in own})


class _Names:
    """Understands indices and names of devices or tasks."""

    def __init__(self, document: Document, what: str, names: list[str], listed: object, field: str) -> None:
        self.document = document
        self.what = what
        self.index = {name: number for number, name in enumerate(names)}
        self.listed: list[int] | None = None
        if listed is None:
            return
        if not isinstance(listed, list):
            document.fail(f"expected a list of {what} names", field=field)
        self.listed = [self.named(name, field) for name in listed]

    def __len__(self) -> int:
        return len(self.index)

    def named(self, name: object, field: str) -> int:
        if not isinstance(name, str):
            self.document.fail(f"{str(name)[:60]!r} is not the name of a {self.what}", field=field)
        if name not in self.index:
            self.document.fail(str(UnknownName(self.what, name, list(self.index)[:200])), field=field)
        return self.index[name]

    def find(self, value: object, field: str) -> int:
        """Return the problem's index for an index or a name of the file."""
        if not isinstance(value, int) or isinstance(value, bool):
            return self.named(value, field)
        size = len(self) if self.listed is None else len(self.listed)
        if not 0 <= value < size:
            self.document.fail(f"{self.what} {value} does not exist; there are {size}", field=field)
        return value if self.listed is None else self.listed[value]


def _assignment(document: Document, value: object, tasks: _Names, devices: _Names) -> Ints:
    pairs: list[tuple[object, object]]
    if isinstance(value, Mapping):
        pairs = list(value.items())
    elif isinstance(value, list):
        pairs = list(enumerate(value))
    else:
        document.fail("expected a list of devices, one for each task, or an object task: device", field="assignment")
    if len(pairs) != len(tasks):
        document.fail(f"{len(pairs)} devices for {len(tasks)} tasks", field="assignment")
    assignment = np.full(len(tasks), -1, dtype=np.int32)
    for key, device in pairs:
        field = f"assignment[{str(key)[:60]}]"
        task = tasks.find(key, field)
        if assignment[task] >= 0:
            document.fail("the task is assigned twice", field=field)
        assignment[task] = devices.find(device, field)
    return assignment


def _order(document: Document, value: object, tasks: _Names) -> Ints:
    if not isinstance(value, list):
        document.fail("expected a list of all tasks, first to last", field="order")
    seen: set[int] = set()
    for place, item in enumerate(value):
        task = tasks.find(item, f"order[{place}]")
        if task in seen:
            document.fail(f"task {item!r} appears twice", field=f"order[{place}]")
        seen.add(task)
    if len(value) != len(tasks):
        missing = next(name for name, task in tasks.index.items() if task not in seen)
        document.fail(f"{len(value)} of {len(tasks)} tasks; {missing!r} is missing", field="order")
    return np.array([tasks.find(item, "order") for item in value], dtype=np.int32)
