"""Plain-Python twins of the planners' kernels, and a checker of plans that shares no code with them.

Everything here is written to be read: lists, loops and the definitions of the papers.
"""

from __future__ import annotations

from collections.abc import Callable
from math import inf

from stretto.core.plan import Plan
from stretto.core.problem import Problem

#: Assignment, start and finish of each task, and the order in which tasks were placed.
Times = tuple[list[int], list[float], list[float], list[int]]


class Plain:
    """A problem as lists: durations per device, reads per task, readers per task."""

    def __init__(self, problem: Problem) -> None:
        arrays = problem.arrays
        self.n, self.m = problem.num_tasks, problem.num_devices
        self.duration: list[list[float]] = problem.device_duration.tolist()
        self.release: list[float] = arrays.release.tolist()
        self.latency: list[list[float]] = arrays.latency.tolist()
        self.inv_bandwidth: list[list[float]] = arrays.inv_bandwidth.tolist()
        self.topo: list[int] = arrays.topo.tolist()
        self.reads: list[list[tuple[int, float]]] = [[] for _ in range(self.n)]
        self.readers: list[list[tuple[int, float]]] = [[] for _ in range(self.n)]
        graph = problem.graph
        for task, handle in zip(graph.read_task.tolist(), graph.read_object.tolist(), strict=True):
            source, size = int(graph.object_task[handle]), float(graph.object_size[handle])
            self.reads[task].append((source, size))
            self.readers[source].append((task, size))

    def transfer(self, source: int, target: int, size: float) -> float:
        if source == target or size == 0:
            return 0.0
        return self.latency[source][target] + size * self.inv_bandwidth[source][target]

    def ready(self, task: int, device: int, assign: list[int], finish: list[float]) -> float:
        arrivals = [finish[u] + self.transfer(assign[u], device, size) for u, size in self.reads[task]]
        return max([self.release[task], *arrivals])

    def able(self, task: int) -> list[int]:
        return [d for d in range(self.m) if self.duration[task][d] < inf]


def decode_in_sequence(problem: Problem, plan: Plan) -> tuple[list[float], list[float]]:
    """Execute a plan without contention, each device in the plan's order; return starts and finishes."""
    plain = Plain(problem)
    assign = plan.assignment.tolist()
    start, finish = [inf] * plain.n, [inf] * plain.n
    free = [0.0] * plain.m
    for task in plan.order.tolist():
        device = assign[task]
        start[task] = max(free[device], plain.ready(task, device, assign, finish))
        finish[task] = start[task] + plain.duration[task][device]
        free[device] = finish[task]
    return start, finish


def check_plan(problem: Problem, plan: Plan) -> None:
    """Assert that a plan is complete, allowed and in a topological order."""
    plain = Plain(problem)
    assert sorted(plan.order.tolist()) == list(range(plain.n))
    assert len(plan.assignment) == plain.n
    position = {task: i for i, task in enumerate(plan.order.tolist())}
    for task, device in enumerate(plan.assignment.tolist()):
        assert 0 <= device < plain.m
        assert plain.duration[task][device] < inf, f"task {task} cannot run on device {device}"
        for source, _ in plain.reads[task]:
            assert position[source] < position[task], f"{source} must come before {task}"


def critical_path_bound(problem: Problem) -> float:
    """The longest chain of shortest durations, from its release, with free transfers."""
    plain = Plain(problem)
    end = [0.0] * plain.n
    for task in plain.topo:
        begin = max([plain.release[task], *(end[u] for u, _ in plain.reads[task])])
        end[task] = begin + min(plain.duration[task])
    return max(end)


def mean_duration(plain: Plain, task: int) -> float:
    spans = [plain.duration[task][d] for d in plain.able(task)]
    return sum(spans) / len(spans)


def mean_link(plain: Plain, average: str = "all") -> tuple[float, float]:
    pairs = plain.m**2 if average == "all" else max(plain.m * (plain.m - 1), 1)
    return sum(map(sum, plain.latency)) / pairs, sum(map(sum, plain.inv_bandwidth)) / pairs


def mean_transfer(link: tuple[float, float], size: float) -> float:
    return link[0] + size * link[1] if size > 0 else 0.0


def upward_rank(plain: Plain, link: tuple[float, float]) -> list[float]:
    rank = [0.0] * plain.n
    for task in reversed(plain.topo):
        behind = [mean_transfer(link, size) + rank[w] for w, size in plain.readers[task]]
        rank[task] = mean_duration(plain, task) + max([0.0, *behind])
    return rank


def downward_rank(plain: Plain, link: tuple[float, float]) -> list[float]:
    rank = [0.0] * plain.n
    for task in plain.topo:
        ahead = [rank[u] + mean_duration(plain, u) + mean_transfer(link, size) for u, size in plain.reads[task]]
        rank[task] = max([0.0, *ahead])
    return rank


def optimistic_cost_table(plain: Plain) -> list[list[float]]:
    table = [[0.0] * plain.m for _ in range(plain.n)]
    for task in reversed(plain.topo):
        for d in range(plain.m):
            for w, size in plain.readers[task]:
                ways = [table[w][q] + plain.duration[w][q] + plain.transfer(d, q, size) for q in plain.able(w)]
                table[task][d] = max(table[task][d], min(ways))
    return table


def list_order(plain: Plain, priority: list[float], tie: list[float] | None = None) -> list[int]:
    """Always the ready task of highest priority; then the lower tie, then the lower index."""
    order: list[int] = []
    while len(order) < plain.n:
        ready = [t for t in range(plain.n) if t not in order and all(source in order for source, _ in plain.reads[t])]
        order.append(min(ready, key=lambda t: (-priority[t], tie[t] if tie else 0.0, t)))
    return order


def earliest_gap(busy: list[tuple[float, float]], ready: float, span: float) -> float:
    """The earliest start in an idle gap of positive length, or behind everything."""
    free = 0.0
    for begin, end in sorted(busy):
        if begin > free and max(ready, free) + span <= begin:
            return max(ready, free)
        free = max(free, end)
    return max(ready, free)


def insert_in_order(
    plain: Plain, order: list[int], key: Callable[[int, int, float, float], tuple[float, ...]]
) -> Times:
    """Place tasks with insertion where ``key(task, device, start, finish)`` is least."""
    assign, start, finish = [-1] * plain.n, [inf] * plain.n, [inf] * plain.n
    busy: list[list[tuple[float, float]]] = [[] for _ in range(plain.m)]
    for task in order:
        options = []
        for d in plain.able(task):
            begin = earliest_gap(busy[d], plain.ready(task, d, assign, finish), plain.duration[task][d])
            end = begin + plain.duration[task][d]
            options.append((*key(task, d, begin, end), d, begin, end))
        *_, assign[task], start[task], finish[task] = min(options)
        busy[assign[task]].append((start[task], finish[task]))
    return assign, start, finish, order


def heft(plain: Plain) -> Times:
    order = list_order(plain, upward_rank(plain, mean_link(plain)))
    return insert_in_order(plain, order, lambda task, device, start, finish: (finish,))


def peft(plain: Plain) -> Times:
    table = optimistic_cost_table(plain)
    rank = [sum(table[t][d] for d in plain.able(t)) / len(plain.able(t)) for t in range(plain.n)]
    order = list_order(plain, rank, [-mean_duration(plain, t) for t in range(plain.n)])
    return insert_in_order(plain, order, lambda task, device, start, finish: (finish + table[task][device],))


def mcp(plain: Plain) -> Times:
    level = upward_rank(plain, mean_link(plain))
    urgent = [-max([0.0, *(level[w] for w, _ in plain.readers[t])]) for t in range(plain.n)]
    order = list_order(plain, level, urgent)
    return insert_in_order(plain, order, lambda task, device, start, finish: (start, finish))


Options = dict[int, list[tuple[float, float, int]]]  # of each ready task: start, finish, device


def in_rounds(plain: Plain, pick: Callable[[Options], tuple[int, int]]) -> Times:
    """Commit what ``pick`` chooses of the ready tasks, whose options are (start, finish, device)."""
    assign, start, finish = [-1] * plain.n, [inf] * plain.n, [inf] * plain.n
    free = [0.0] * plain.m
    done: list[int] = []
    while len(done) < plain.n:
        options: Options = {}
        for task in range(plain.n):
            if task not in done and all(source in done for source, _ in plain.reads[task]):
                begins = [(max(free[d], plain.ready(task, d, assign, finish)), d) for d in plain.able(task)]
                options[task] = [(begin, begin + plain.duration[task][d], d) for begin, d in begins]
        task, device = pick(options)
        assign[task] = device
        start[task], finish[task] = next((s, f) for s, f, d in options[task] if d == device)
        free[device] = finish[task]
        done.append(task)
    return assign, start, finish, done


def etf(plain: Plain) -> Times:
    level = upward_rank(plain, (0.0, 0.0))

    def pick(options: Options) -> tuple[int, int]:
        pairs = [(s, -level[t], f, t, d) for t, rows in options.items() for s, f, d in rows]
        return min(pairs)[3:]

    return in_rounds(plain, pick)


def _earliest_finish(rows: list[tuple[float, float, int]]) -> tuple[float, int]:
    return min((f, d) for _, f, d in rows)


def min_min(plain: Plain) -> Times:
    def pick(options: Options) -> tuple[int, int]:
        _, task = min((_earliest_finish(rows)[0], t) for t, rows in options.items())
        return task, _earliest_finish(options[task])[1]

    return in_rounds(plain, pick)


def max_min(plain: Plain) -> Times:
    def pick(options: Options) -> tuple[int, int]:
        _, task = min((-_earliest_finish(rows)[0], t) for t, rows in options.items())
        return task, _earliest_finish(options[task])[1]

    return in_rounds(plain, pick)


def sufferage(plain: Plain) -> Times:
    def loss(rows: list[tuple[float, float, int]]) -> float:
        finishes = sorted(f for _, f, _ in rows)
        return finishes[1] - finishes[0] if len(finishes) > 1 else inf

    def pick(options: Options) -> tuple[int, int]:
        _, task = min((-loss(rows), t) for t, rows in options.items())
        return task, _earliest_finish(options[task])[1]

    return in_rounds(plain, pick)


def dls(plain: Plain) -> Times:
    def median(task: int) -> float:
        spans = sorted(plain.duration[task][d] for d in plain.able(task))
        half = len(spans) // 2
        return spans[half] if len(spans) % 2 else (spans[half - 1] + spans[half]) / 2

    level = [0.0] * plain.n
    for task in reversed(plain.topo):
        level[task] = median(task) + max([0.0, *(level[w] for w, _ in plain.readers[task])])

    def pick(options: Options) -> tuple[int, int]:
        # Sih and Lee: static level minus start plus (median minus duration).
        pairs = [
            (-(level[t] - s + (median(t) - plain.duration[t][d])), t, d)
            for t, rows in options.items()
            for s, _, d in rows
        ]
        return min(pairs)[1:]

    return in_rounds(plain, pick)


def append_in_order(
    plain: Plain, order: list[int], key: Callable[[float, float, float, float], tuple[float, ...]]
) -> Times:
    """Append tasks where ``key(start, finish, duration, free)`` is least."""
    assign, start, finish = [-1] * plain.n, [inf] * plain.n, [inf] * plain.n
    free = [0.0] * plain.m
    for task in order:
        options = []
        for d in plain.able(task):
            begin = max(free[d], plain.ready(task, d, assign, finish))
            end = begin + plain.duration[task][d]
            options.append((*key(begin, end, plain.duration[task][d], free[d]), end, d, begin))
        *_, finish[task], assign[task], start[task] = min(options)
        free[assign[task]] = finish[task]
    return assign, start, finish, order


def arrival_order(plain: Plain) -> list[int]:
    return sorted(plain.topo, key=lambda task: plain.release[task])


def hlfet(plain: Plain) -> Times:
    order = list_order(plain, upward_rank(plain, (0.0, 0.0)))
    return append_in_order(plain, order, lambda start, finish, span, free: (start,))


def mct(plain: Plain) -> Times:
    return append_in_order(plain, arrival_order(plain), lambda start, finish, span, free: (finish,))


def met(plain: Plain) -> Times:
    return append_in_order(plain, arrival_order(plain), lambda start, finish, span, free: (span,))


def olb(plain: Plain) -> Times:
    return append_in_order(plain, arrival_order(plain), lambda start, finish, span, free: (free,))


def cpop(plain: Plain) -> Times:
    """The paper's CPOP: mean downward ranks, the path on one device."""
    link = mean_link(plain)
    up, down = upward_rank(plain, link), downward_rank(plain, link)
    entries = [t for t in range(plain.n) if not plain.reads[t]]
    path = [min(entries, key=lambda t: (-up[t], t))]
    while plain.readers[path[-1]]:
        path.append(min((-(mean_transfer(link, size) + up[w]), w) for w, size in plain.readers[path[-1]])[1])

    def cost(d: int) -> tuple[int, float, int]:
        spans = [plain.duration[t][d] for t in path if plain.duration[t][d] < inf]
        return -len(spans), sum(spans), d

    home = min(range(plain.m), key=cost)

    def key(task: int, device: int, start: float, finish: float) -> tuple[float, ...]:
        stays = task in path and plain.duration[task][home] < inf
        return (float(stays and device != home), finish)

    return insert_in_order(plain, list_order(plain, [a + b for a, b in zip(up, down, strict=True)]), key)


def fcp(plain: Plain) -> Times:
    order = list_order(plain, upward_rank(plain, mean_link(plain)))
    message = mean_link(plain, "distinct")
    assign, start, finish = [-1] * plain.n, [inf] * plain.n, [inf] * plain.n
    free = [0.0] * plain.m
    for task in order:
        devices = {min(plain.able(task), key=lambda d: (free[d], d))}
        arrivals = [(finish[u] + mean_transfer(message, size), assign[u]) for u, size in plain.reads[task]]
        last = next((a for a in arrivals if a[0] == max(at for at, _ in arrivals)), None)
        if last and last[1] in plain.able(task):
            devices.add(last[1])
        begin, d = min((max(free[d], plain.ready(task, d, assign, finish)), d) for d in devices)
        assign[task], start[task], finish[task] = d, begin, begin + plain.duration[task][d]
        free[d] = finish[task]
    return assign, start, finish, order


def bil(plain: Plain) -> Times:
    table = optimistic_cost_table(plain)

    def pick(options: Options) -> tuple[int, int]:
        crowd = max(len(options) / plain.m - 1, 0.0)

        def makespans(task: int) -> list[tuple[float, int]]:
            spans = plain.duration[task]
            return sorted((s + (spans[d] + table[task][d]) + spans[d] * crowd, d) for s, _, d in options[task])

        def urgency(task: int) -> float:
            row = makespans(task)
            return row[min(len(options), len(row)) - 1][0]

        task = min(options, key=lambda t: (-urgency(t), t))
        return task, makespans(task)[0][1]

    return in_rounds(plain, pick)


def lookahead(plain: Plain) -> Times:
    rank = upward_rank(plain, mean_link(plain))
    order = list_order(plain, rank)
    assign, start, finish = [-1] * plain.n, [inf] * plain.n, [inf] * plain.n
    busy: list[list[tuple[float, float]]] = [[] for _ in range(plain.m)]

    def place(task: int, d: int, taken: list[list[tuple[float, float]]], known: dict[int, tuple[int, float]]) -> float:
        arrivals = [known[u][1] + plain.transfer(known[u][0], d, size) for u, size in plain.reads[task] if u in known]
        return earliest_gap(taken[d], max([plain.release[task], *arrivals]), plain.duration[task][d])

    for task in order:
        options = []
        known = {t: (assign[t], finish[t]) for t in range(plain.n) if assign[t] >= 0}
        for d in plain.able(task):
            taken = [list(rows) for rows in busy]
            begin = place(task, d, taken, known)
            end = begin + plain.duration[task][d]
            taken[d].append((begin, end))
            trial = {**known, task: (d, end)}
            latest = [] if plain.readers[task] else [end]
            for w in sorted({w for w, _ in plain.readers[task]}, key=lambda w: (-rank[w], w)):
                begins = {q: place(w, q, taken, trial) for q in plain.able(w)}
                then, q = min((begins[q] + plain.duration[w][q], q) for q in begins)
                taken[q].append((begins[q], then))  # not computed back from its end: that would round
                latest.append(then)
            options.append((max(latest), end, d, begin))
        _, finish[task], assign[task], start[task] = min(options)
        busy[assign[task]].append((start[task], finish[task]))
    return assign, start, finish, order
