"""Stretto in under 200 lines of plain Python: a task graph, HEFT, an event loop, and a policy that learns.

Two small policies build a plan, as in Doppler: SEL chooses the next task among the ready ones, PLC chooses its device.
Each is a softmax over a linear score. REINFORCE changes their weights after every batch of plans, by how long the
plans take in a work-conserving event loop. Nothing here imports Stretto, numpy or jax; a test compares HEFT and the
event loop with the package. Run it with ``python examples/nano_stretto.py``; it takes some seconds.
"""

from __future__ import annotations

import heapq
import math
import random
from dataclasses import dataclass

KINDS = ("cpu", "cpu", "gpu", "gpu")
#: Seconds of each step of a tiled Cholesky factorization, by kind of device: only some steps gain from a GPU.
SECONDS = {
    "potrf": {"cpu": 3.0, "gpu": 4.0},
    "trsm": {"cpu": 6.0, "gpu": 2.0},
    "syrk": {"cpu": 6.0, "gpu": 1.5},
    "gemm": {"cpu": 10.0, "gpu": 1.0},
}
TRANSFER_S = 3.0  # moving one tile from one device to another


@dataclass(frozen=True)
class Graph:
    """Tasks by index, parents first: how long each takes on each device, whose output it reads, who reads its own."""

    duration: list[list[float]]  # [task][device]
    parents: list[list[int]]
    children: list[list[int]]


@dataclass(frozen=True)
class Plan:
    """A device for every task, and one order of all tasks. No times: those come from executing the plan."""

    device: list[int]
    order: list[int]


def cholesky(tiles: int = 5) -> Graph:
    """Return the graph of a tiled Cholesky factorization; each task reads the tiles that were written last."""
    names: list[str] = []
    parents: list[list[int]] = []
    writer: dict[tuple[int, int], int] = {}  # the task that wrote a tile last

    def add(name: str, target: tuple[int, int], *read: tuple[int, int]) -> None:
        parents.append(sorted({writer[tile] for tile in (target, *read) if tile in writer}))
        writer[target] = len(names)
        names.append(name)

    for k in range(tiles):
        add("potrf", (k, k))
        for i in range(k + 1, tiles):
            add("trsm", (i, k), (k, k))
        for i in range(k + 1, tiles):
            add("syrk", (i, i), (i, k))
            for j in range(k + 1, i):
                add("gemm", (i, j), (i, k), (j, k))
    children = [[task for task, before in enumerate(parents) if parent in before] for parent in range(len(names))]
    return Graph([[SECONDS[name][kind] for kind in KINDS] for name in names], parents, children)


def upward_ranks(graph: Graph) -> list[float]:
    """Return the longest path from each task to the end, with mean durations and mean transfers."""
    transfer = TRANSFER_S * (len(KINDS) - 1) / len(KINDS)  # free where parent and child share a device
    rank = [0.0] * len(graph.duration)
    for task in reversed(range(len(rank))):
        after = max((transfer + rank[child] for child in graph.children[task]), default=0.0)
        rank[task] = sum(graph.duration[task]) / len(KINDS) + after
    return rank


def heft(graph: Graph) -> tuple[Plan, float]:
    """Return HEFT's plan and makespan: tasks by upward rank, each in the gap where it finishes first."""
    rank, n = upward_ranks(graph), len(graph.duration)
    busy: list[list[tuple[float, float, int]]] = [[] for _ in KINDS]  # start, finish and task, by device
    device, start, finish = [0] * n, [0.0] * n, [0.0] * n
    for task in sorted(range(n), key=lambda task: -rank[task]):
        best = math.inf
        for d in range(len(KINDS)):
            at = max((finish[p] + TRANSFER_S * (device[p] != d) for p in graph.parents[task]), default=0.0)
            for begun, ended, _ in busy[d]:  # the first gap that is long enough
                if at + graph.duration[task][d] <= begun:
                    break
                at = max(at, ended)
            if at + graph.duration[task][d] < best:
                best, start[task], device[task] = at + graph.duration[task][d], at, d
        finish[task] = best
        busy[device[task]].append((start[task], best, task))
        busy[device[task]].sort()
    return Plan(device, sorted(range(n), key=lambda task: (start[task], -rank[task]))), max(finish)


def execute(graph: Graph, plan: Plan) -> float:
    """Return the makespan of a plan: no device idles while one of its tasks has all its inputs."""
    position = {task: at for at, task in enumerate(plan.order)}
    missing = [len(parents) for parents in graph.parents]
    inputs_at = [0.0] * len(missing)
    waiting: list[list[tuple[int, int]]] = [[] for _ in KINDS]  # by device: tasks that could start, by the plan's order
    idle = set(range(len(KINDS)))
    events = [(0.0, False, task) for task, count in enumerate(missing) if count == 0]  # time, has it ended?, task
    now = 0.0
    while events:
        now = events[0][0]
        while events and events[0][0] == now:  # everything that happens at this moment, before anything starts
            _, has_ended, task = heapq.heappop(events)
            if not has_ended:
                heapq.heappush(waiting[plan.device[task]], (position[task], task))
                continue
            idle.add(plan.device[task])
            for child in graph.children[task]:
                moved = now + TRANSFER_S * (plan.device[child] != plan.device[task])
                inputs_at[child] = max(inputs_at[child], moved)
                missing[child] -= 1
                if missing[child] == 0:
                    heapq.heappush(events, (inputs_at[child], False, child))
        for d in sorted(idle):
            if waiting[d]:
                _, task = heapq.heappop(waiting[d])
                idle.remove(d)
                heapq.heappush(events, (now + graph.duration[task][d], True, task))
    return now


def choose(rows: list[list[float]], weights: list[float], gradient: list[float], rng: random.Random) -> int:
    """Draw a row by the softmax of its score, and add the gradient of the log-probability of that choice."""
    scores = [sum(w * x for w, x in zip(weights, row, strict=True)) for row in rows]
    odds = [math.exp(score - max(scores)) for score in scores]
    chosen = rng.choices(range(len(rows)), odds)[0]
    for i in range(len(weights)):
        mean = sum(o * row[i] for o, row in zip(odds, rows, strict=True)) / sum(odds)
        gradient[i] += rows[chosen][i] - mean
    return chosen


def episode(graph: Graph, weights: list[list[float]], rng: random.Random) -> tuple[Plan, list[list[float]]]:
    """Build one plan with SEL and PLC; return it with the gradients of its log-probability for both."""
    rank, n = upward_ranks(graph), len(graph.duration)
    gradients = [[0.0] * len(weights[0]), [0.0] * len(weights[1])]
    missing = [len(parents) for parents in graph.parents]
    ready = [task for task in range(n) if missing[task] == 0]
    free, device, finish, order = [0.0] * len(KINDS), [0] * n, [0.0] * n, []
    while ready:
        rows = [[rank[t] / rank[0], max((finish[p] for p in graph.parents[t]), default=0) / rank[0]] for t in ready]
        task = ready.pop(choose(rows, weights[0], gradients[0], rng))
        rows = []
        for d in range(len(KINDS)):
            inputs = max((finish[p] + TRANSFER_S * (device[p] != d) for p in graph.parents[task]), default=0.0)
            at, took = max(inputs, free[d]), graph.duration[task][d]
            rows.append([(at + took) / 10, took / 10, free[d] / 10, (at - inputs) / 10])
        d = device[task] = choose(rows, weights[1], gradients[1], rng)
        free[d] = finish[task] = 10 * rows[d][0]
        order.append(task)
        for child in graph.children[task]:
            missing[child] -= 1
            if missing[child] == 0:
                ready.append(child)
    return Plan(device, order), gradients


def train(graph: Graph, *, updates: int = 80, batch: int = 12, rate: float = 2.0, seed: int = 0) -> list[list[float]]:
    """Learn by REINFORCE; return a row of makespans per batch. An advantage is how much better than its batch."""
    rng = random.Random(seed)
    weights = [[0.0] * 2, [0.0] * 4]  # at first every choice is equally likely
    history = []
    for _ in range(updates):
        played = [episode(graph, weights, rng) for _ in range(batch)]
        times = [execute(graph, plan) for plan, _ in played]
        mean = sum(times) / batch
        spread = math.sqrt(sum((time - mean) ** 2 for time in times) / batch) or 1.0
        for time, (_, gradients) in zip(times, played, strict=True):
            for head, gradient in zip(weights, gradients, strict=True):
                for i, slope in enumerate(gradient):
                    head[i] += rate * (mean - time) / spread * slope / batch
        history.append(times)
    return history


def main() -> None:
    """Plan one graph by HEFT, learn to plan it, and print both."""
    graph = cholesky()
    plan, makespan = heft(graph)
    print(f"{len(graph.duration)} tasks on {', '.join(KINDS)}")
    print(f"heft                        {makespan:6.1f} s")
    print(f"heft, work-conserving       {execute(graph, plan):6.1f} s")
    history = train(graph)
    print(f"learned, mean of first batch {sum(history[0]) / len(history[0]):5.1f} s")
    print(f"learned, mean of last batch {sum(history[-1]) / len(history[-1]):6.1f} s")
    print(f"learned, best plan          {min(map(min, history)):6.1f} s")


if __name__ == "__main__":
    main()
