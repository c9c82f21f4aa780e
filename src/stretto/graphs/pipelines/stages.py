"""Stages of a pipeline: load and period of each device, latency, and the bytes of microbatches in flight.

The model is that of MSR's dnn-partitioning and of PipeDream: a device works on one microbatch at a time, and
its load is the time that it computes plus the time that its objects take to come and go. Every object is sent once per
device that reads it, and costs its sender and its receiver. Once the pipeline is full, one microbatch leaves the
pipeline per period, the largest load of all devices.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from stretto.core.csr import Floats, Ints
from stretto.core.problem import Problem


@dataclass(frozen=True, eq=False)
class StageLoads:
    """What an assignment asks of each device per microbatch."""

    compute_s: Floats  # [m]
    transfer_s: Floats  # [m] sending and receiving
    resident_bytes: Floats  # [m] parameters, once for all microbatches
    activation_bytes: Floats  # [m] objects made or received, of one microbatch

    @property
    def period_s(self) -> float:
        """Time between two microbatches once the pipeline is full."""
        return float((self.compute_s + self.transfer_s).max())


def stage_loads(problem: Problem, assignment: Ints) -> StageLoads:
    """Return the loads of an assignment."""
    p, m = problem.arrays, problem.num_devices
    compute = np.bincount(
        assignment, weights=problem.device_duration[np.arange(len(assignment)), assignment], minlength=m
    )
    transfer, activation = np.zeros(m), np.zeros(m)
    in_bytes = problem.graph.transfer_unit == "bytes"
    for o in range(len(p.object_size)):
        home, size = int(assignment[p.object_task[o]]), float(p.object_size[o])
        targets = {int(d) for d in assignment[p.object_reader[p.object_ptr[o] : p.object_ptr[o + 1]]]}
        if in_bytes:
            activation[[home, *(targets - {home})]] += size
        for d in targets - {home} if size > 0 else ():
            seconds = p.latency[home, d] + size * p.inv_bandwidth[home, d]
            transfer[home] += seconds
            transfer[d] += seconds
    resident = problem.graph.resident_bytes if problem.graph.resident_bytes is not None else np.zeros(len(assignment))
    kept = np.bincount(assignment, weights=resident, minlength=m)
    return StageLoads(np.asarray(compute), transfer, np.asarray(kept), activation)


def depth_of(problem: Problem, assignment: Ints) -> Ints:
    """Return the stage of each device: how many devices data passes before it at most, [m].

    Devices whose stages feed each other (an assignment that is not a sequence of cuts) share the largest depth found
    within as many steps as there are devices.
    """
    p, m = problem.arrays, problem.num_devices
    source = assignment[p.in_task]
    target = np.repeat(assignment, np.diff(p.in_ptr))
    pairs = {(int(a), int(b)) for a, b in zip(source, target, strict=True) if a != b}
    depth = np.zeros(m, dtype=np.int32)
    for _ in range(m):
        for a, b in pairs:
            depth[b] = min(max(depth[b], depth[a] + 1), m - 1)
    return depth


def in_flight_bytes(problem: Problem, assignment: Ints, num_microbatches: int) -> Floats:
    """Return the bytes per device once the pipeline is full: parameters, and the activations of microbatches in flight.

    A stage keeps the activations of a microbatch until those behind it have had their turn: with d stages from here to
    the end, of min(d, microbatches) of them. For training graphs that is the 1F1B schedule's figure.
    """
    loads, depth = stage_loads(problem, assignment), depth_of(problem, assignment)
    behind = np.minimum(depth.max(initial=0) - depth + 1, num_microbatches)
    return np.asarray(loads.resident_bytes + behind * loads.activation_bytes, dtype=np.float64)


def run_pipeline(loads_s: Floats, order: Ints, num_microbatches: int) -> Floats:
    """Return when each microbatch leaves a chain of stages, of which each serves one at a time, [microbatches]."""
    free = np.zeros(len(order))
    done = np.zeros(num_microbatches)
    for batch in range(num_microbatches):
        ready = 0.0
        for stage, device in enumerate(order.tolist()):
            ready = max(ready, free[stage]) + float(loads_s[device])
            free[stage] = ready
        done[batch] = ready
    return done
