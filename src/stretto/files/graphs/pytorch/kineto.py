"""PyTorch profiler (Kineto) traces: one task per kernel, copy and launching operator, with measured times.

A trace is Chrome JSON with ``traceEvents``. Three relations make the graph: events of one stream or thread follow each
other; an operator of the host launches the kernels whose ``correlation`` is that of a runtime call inside it; and the
arrows that the profiler draws (``ph`` "s" and "f": launches, forward to backward).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from stretto.core.builder import GraphBuilder
from stretto.core.graph import TaskGraph
from stretto.core.provenance import DURATIONS, MEASURED
from stretto.files.document import Document
from stretto.files.sniff import graph_name, json_object

#: Categories that run on devices; the others of the host are operators, calls of the runtime, or marks of the user.
DEVICE = frozenset(["kernel", "gpu_memcpy", "gpu_memset", "mtia_ccp_events", "xpu_kernel", "hpu_op"])
HOST = "cpu_op"
_RUNTIME = frozenset(["cuda_runtime", "cuda_driver", "hip_runtime", "mtia_runtime", "xpu_runtime", "runtime"])
_READ = DEVICE | _RUNTIME | {HOST}
_MICRO = 1e-6
#: A kernel's name may be a C++ type of kilobytes.
_LONGEST_NAME = 60
_CPU, _GPU = "cpu", "gpu"


@dataclass(frozen=True)
class _Event:
    """A complete event, with times in seconds since the first."""

    name: str
    category: str
    lane: tuple[str, str]
    start_s: float
    duration_s: float
    correlation: int | None
    num_bytes: float

    @property
    def end_s(self) -> float:
        return self.start_s + self.duration_s


@dataclass(frozen=True)
class KinetoFormat:
    """Reads outermost operators of the host, and what runs on devices.

    Durations are measured on the kind that ran the task (``cpu`` or ``gpu``); nothing is known about other kinds, so
    a task runs only on its own. An operator that launches a kernel comes before it; a copy moves its bytes to the task
    that follows it.
    """

    summary: str = "PyTorch profiler trace (Kineto, Chrome JSON): operators and kernels with measured times"
    endings: tuple[str, ...] = ("pt.trace.json",)

    def matches(self, document: Document) -> bool:
        if b'"traceEvents"' not in document.data:
            return False
        root = json_object(document)
        events = root.get("traceEvents") if root is not None else None
        if not isinstance(events, list) or not isinstance(root, dict):
            return False
        return any(_category(event) == HOST or _category(event) in DEVICE for event in events)

    def read(self, document: Document) -> TaskGraph:
        root = json_object(document)
        raw = root.get("traceEvents") if root is not None else None
        if not isinstance(raw, list):
            document.fail("a Kineto trace has a list of traceEvents", field="traceEvents")
        events = list(_events(document, raw))
        host = _outermost([event for event in events if event.category == HOST])
        device = [event for event in events if event.category in DEVICE]
        if not host and not device:
            document.fail("no operators or kernels", field="traceEvents")
        return _Builder(document, host, device, events, raw).graph()


def _category(event: object) -> str:
    found = event.get("cat") if isinstance(event, dict) and event.get("ph") == "X" else None
    return found if isinstance(found, str) else ""


def _events(document: Document, raw: list[object]) -> Iterator[_Event]:
    """Yield the complete events of operators, kernels and runtime calls."""
    kept = [(place, event) for place, event in enumerate(raw) if _category(event) in _READ]
    starts = [document.number(_get(event, "ts"), f"traceEvents[{place}].ts", minimum=-1e18) for place, event in kept]
    first = min(starts, default=0.0)
    for (place, event), start in zip(kept, starts, strict=True):
        args = _get(event, "args")
        details = args if isinstance(args, dict) else {}
        correlation = details.get("correlation")
        size = details.get("bytes", 0)
        yield _Event(
            str(_get(event, "name"))[:_LONGEST_NAME],
            _category(event),
            (str(_get(event, "pid")), str(_get(event, "tid"))),
            (start - first) * _MICRO,
            document.number(_get(event, "dur") or 0, f"traceEvents[{place}].dur") * _MICRO,
            correlation if isinstance(correlation, int) and not isinstance(correlation, bool) else None,
            document.number(size, f"traceEvents[{place}].bytes") if isinstance(size, (int, float)) else 0.0,
        )


def _start(event: object) -> float:
    """Return when an event begins, in microseconds; those without a time begin at 0."""
    found = _get(event, "ts")
    is_time = isinstance(found, (int, float)) and not isinstance(found, bool) and abs(found) < 1e18
    return float(found) if is_time else 0.0  # type: ignore[arg-type]


def _get(event: object, key: str) -> object:
    return event.get(key) if isinstance(event, dict) else None


def _outermost(events: list[_Event]) -> list[_Event]:
    """Return the operators of each thread that are not inside another, by start."""
    found: list[_Event] = []
    ends: dict[tuple[str, str], float] = {}
    for event in sorted(events, key=lambda event: (event.start_s, -event.duration_s)):
        if event.start_s >= ends.get(event.lane, -1.0):
            found.append(event)
            ends[event.lane] = event.end_s
    return found


class _Builder:
    """Turns events into tasks, ordered by start, so that every edge goes forward in time."""

    def __init__(
        self, document: Document, host: list[_Event], device: list[_Event], events: list[_Event], raw: list[object]
    ) -> None:
        self.document = document
        self.tasks = sorted([*host, *device], key=lambda event: (event.start_s, event.end_s))
        self.number = {id(event): place for place, event in enumerate(self.tasks)}
        self.events, self.raw = events, raw
        self.edges: dict[tuple[int, int], None] = {}

    def graph(self) -> TaskGraph:
        build = GraphBuilder(graph_name(self.document))
        seen: dict[str, int] = {}
        for event in self.tasks:
            seen[event.name] = seen.get(event.name, -1) + 1
            name = event.name if seen[event.name] == 0 else f"{event.name}#{seen[event.name]}"
            while name in build:  # an event may really be called so
                name += "'"
            on_device = event.category in DEVICE
            kind, other = (_GPU, _CPU) if on_device else (_CPU, _GPU)
            durations = {kind: event.duration_s, other: float("inf")}
            build.task(name, event.duration_s, durations=dict(sorted(durations.items())), category=event.category)
        self._follow_lanes()
        launches = self._follow_launches()
        self._follow_arrows()
        for source, target in self.edges:
            moved = self.tasks[source].num_bytes if self.tasks[source].category == "gpu_memcpy" else 0.0
            build.edge(source, target, moved)
        build.meta |= {DURATIONS: MEASURED, "num_launches": launches, "num_lanes": len({e.lane for e in self.tasks})}
        return build.graph()

    def _add(self, source: int, target: int) -> None:
        if source < target:
            self.edges[(source, target)] = None

    def _follow_lanes(self) -> None:
        """Events of a stream or thread follow each other."""
        last: dict[tuple[str, str], int] = {}
        for number, event in enumerate(self.tasks):
            if event.lane in last:
                self._add(last[event.lane], number)
            last[event.lane] = number

    def _follow_launches(self) -> int:
        """Connect operators with the kernels that a runtime call inside them launched; return how many."""
        calls = {event.correlation: event for event in self.events if event.category in _RUNTIME}
        calls.pop(None, None)
        lanes = self._host_lanes()
        count = 0
        for number, event in enumerate(self.tasks):
            call = calls.get(event.correlation) if event.category in DEVICE else None
            if call is None:
                continue
            owner = _around(lanes.get(call.lane, []), call)
            if owner is not None:
                self._add(self.number[id(owner)], number)
                count += 1
        return count

    def _follow_arrows(self) -> None:
        """Connect operators of the way forward with those of the way back, as the profiler's arrows do."""
        lanes = self._host_lanes()
        origin = min((_start(event) for event in self.raw if _category(event) in _READ), default=0.0)
        begins: dict[object, int] = {}
        for wanted in ("s", "f"):
            for event in self.raw:
                if not isinstance(event, dict) or event.get("ph") != wanted or event.get("cat") != "fwdbwd":
                    continue
                at = (_start(event) - origin) * _MICRO
                lane = lanes.get((str(event.get("pid")), str(event.get("tid"))), [])
                owner = _around(lane, _Event("", "", ("", ""), at, 0.0, None, 0.0))
                key = str(event.get("id"))
                if owner is not None and wanted == "s":
                    begins[key] = self.number[id(owner)]
                elif owner is not None and key in begins:
                    self._add(begins[key], self.number[id(owner)])

    def _host_lanes(self) -> Mapping[tuple[str, str], list[_Event]]:
        lanes: dict[tuple[str, str], list[_Event]] = {}
        for event in self.tasks:
            if event.category == HOST:
                lanes.setdefault(event.lane, []).append(event)
        return lanes


def _around(lane: list[_Event], call: _Event) -> _Event | None:
    """Return the operator of a thread that a call lies in, by bisection."""
    low, high = 0, len(lane)
    while low < high:
        middle = (low + high) // 2
        if lane[middle].start_s <= call.start_s:
            low = middle + 1
        else:
            high = middle
    found = lane[low - 1] if low else None
    return found if found is not None and found.end_s >= call.start_s else None


FORMAT = KinetoFormat()
