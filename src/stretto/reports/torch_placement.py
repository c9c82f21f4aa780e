"""A placed PyTorch module: a module that runs, a device map for accelerate, a split for pipelines."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import NoReturn

import numpy as np

from stretto.core.cluster import Cluster
from stretto.core.notes import has_memory_limit
from stretto.core.plan import Plan
from stretto.core.planner import Budget
from stretto.core.problem import Problem
from stretto.core.units import format_bytes
from stretto.errors import Infeasible, InvalidInput
from stretto.files.graphs.pytorch.torch_cost import Torch, num_bytes
from stretto.files.graphs.pytorch.torch_export import SHARED_BYTES, TorchProgram, export_module, from_torch_program
from stretto.files.graphs.roofline import costs_of
from stretto.graphs.evaluate import PlanResult, Setting, evaluate
from stretto.graphs.memory.repair import REPAIR
from stretto.reports.device_map import DeviceNames, between_cuts, conflicts, module_devices
from stretto.reports.pipeline_split import PipelineStage, best_chain, best_stages
from stretto.reports.place_devices import Devices
from stretto.reports.placement import Placement
from stretto.runlog.record import Json

#: Key of ``Plan.info``: the plan is a contiguous one, in place of the policy's.
CONTIGUOUS = "contiguous_ranges"
_CONTIGUOUS_NOTE = (
    "The policy's own plan does not fit the memory of the devices. This one does: each device has one range of the "
    "operations, the fastest such plan."
)
_TRAINING_NOTE = (
    "A training step: a backward pass is assumed to take twice as long as the forward pass. Gradients, optimizer state "
    "and activations that the backward pass reads stay on the device."
)


@dataclass(frozen=True, eq=False, repr=False)
class TorchPlacement(Placement):
    """The operations of a PyTorch module on devices, with times; printing it shows the gist."""

    program: TorchProgram = None  # type: ignore[assignment]  # the base has a default
    budget: Budget = field(default_factory=Budget)

    @property
    def notes(self) -> tuple[str, ...]:
        """What the placement takes for granted."""
        notes = list(super().notes)
        shared = float(self.graph.meta.get(SHARED_BYTES, 0.0))
        if shared:
            notes.append(
                f"Parameters that several operations use ({format_bytes(shared)}) were counted at each of them."
            )
        if CONTIGUOUS in self.plan.info:
            notes.append(_CONTIGUOUS_NOTE)
        if self.program.optimizer_state is not None:
            notes.append(_TRAINING_NOTE)
        return tuple(notes)

    @cached_property
    def parameter_bytes(self) -> Mapping[str, float]:
        """Bytes of parameters and buffers on each device, each counted once per device that uses it."""
        kept: dict[str, dict[Torch, float]] = {device.name: {} for device in self.result.problem.cluster.devices}
        for number, group in enumerate(self.program.groups):
            device = self.result.problem.cluster.devices[int(self.plan.assignment[number])].name
            kept[device] |= {weight: num_bytes(weight.meta["val"]) for weight in group.weights}
        return {device: sum(sizes.values()) for device, sizes in kept.items()}

    def jit(self, devices: Sequence[object] | None = None) -> NoReturn:
        """Refuse: this is the way of JAX."""
        raise InvalidInput("a PyTorch module runs as placement.module(devices)", field="jit")

    def module(self, devices: Sequence[object] | None = None) -> Torch:
        """Return a ``torch.nn.Module`` that runs each operation on its device.

        Parameters
        ----------
        devices
            A device of torch for each device of the placement, in its order, such as ``["cuda:0", "cpu"]``; by
            default the GPUs and the CPU that the names of the cluster's kinds say. A device may occur more than once.
        """
        from stretto.engines.torch_program import place_module

        return place_module(self.program, self.graph, self.schedule, self._torch_names(devices))

    def _torch_names(self, devices: Sequence[object] | None) -> list[object]:
        cluster = self.result.problem.cluster
        if devices is not None and len(devices) != cluster.num_devices:
            raise InvalidInput(
                f"{len(devices)} devices of torch for a placement on {cluster.num_devices}: pass one for each",
                field="devices",
            )
        return list(devices) if devices is not None else list(default_names(cluster))

    @cached_property
    def by_module(self) -> TorchPlacement:
        """The placement that a device map can hold; this one where it can hold it.

        A device map gives each module one device, and what a module does between its children (a residual
        connection) needs its tensors on one device. Where this placement asks for more, the modules concerned become
        single operations and are planned again, with the same policy and budget. The fastest placement that gives each
        device one range of the operations, cut where a map can hold it, is taken where that is faster or fits alone.

        Raises
        ------
        Infeasible
            Neither fits the memory of the devices.
        """
        found = conflicts(self.program, self.plan.assignment.tolist())
        if not found:
            return self
        in_ranges = self._in_ranges()
        placed = self
        try:
            while found:
                placed = placed._planned(placed.program.joined(found))
                found = conflicts(placed.program, placed.plan.assignment.tolist())
        except Infeasible:
            if in_ranges is None:
                raise
            return in_ranges
        return placed if in_ranges is None or placed.makespan_s <= in_ranges.makespan_s else in_ranges

    def _in_ranges(self) -> TorchPlacement | None:
        """Return the fastest placement in ranges that a device map can hold, or None where none fits."""
        old = self.result
        program = self.program.joined(between_cuts(self.program))
        problem = _problem(program, old.problem.cluster)
        chain = best_chain(problem)
        if chain is None or conflicts(program, chain.assignment.tolist()):
            return None
        try:
            result = _as_policy(problem, chain, old.policy, old.params, self.budget, old.setting)
        except Infeasible:
            return None
        return replace(self, result=result, program=program)

    def _planned(self, program: TorchProgram) -> TorchPlacement:
        old = self.result
        problem = _problem(program, old.problem.cluster)
        result = _planned_within_memory(problem, old.policy, old.params, self.budget, old.setting)
        return replace(self, result=result, program=program)

    def device_map(self, devices: Sequence[object] | None = None) -> DeviceNames:
        """Return the device of each module for ``accelerate.dispatch_model``; see :attr:`by_module` for its time.

        Parameters
        ----------
        devices
            What to call each device of the placement; by default GPUs by number, and ``cpu``.
        """
        placed = self.by_module
        return module_devices(placed.program, placed.plan.assignment.tolist(), self._torch_names(devices))

    def stages(self, num_stages: int | None = None) -> tuple[PipelineStage, ...]:
        """Return the best contiguous stages for a pipeline, one per device that the placement uses.

        The slowest stage, with the data that it receives, is as fast as possible within the memory of the devices.

        Parameters
        ----------
        num_stages
            By default as many as the placement uses devices; they are taken in the order of their first use.
        """
        return best_stages(self.program, self.result.problem, self._used_devices(), num_stages)

    def _used_devices(self) -> list[int]:
        order = np.lexsort((self.schedule.finish_s, self.schedule.start_s))
        used = list(dict.fromkeys(self.plan.assignment[order].tolist()))
        return used + [d for d in range(self.result.problem.num_devices) if d not in used]

    def split_spec(self, num_stages: int | None = None) -> dict[str, Torch]:
        """Return where ``torch.distributed.pipelining.pipeline`` should cut the module, as its ``split_spec``."""
        from stretto.files.graphs.pytorch.torch_export import import_torch

        import_torch("splitting PyTorch modules")
        from torch.distributed.pipelining import SplitPoint

        stages = self.stages(num_stages if num_stages is not None else len(set(self.plan.assignment.tolist())))
        return {stage.first_module: SplitPoint.BEGINNING for stage in stages[1:]}


def is_torch_module(value: object) -> bool:
    """Say whether something is a ``torch.nn.Module``; torch is not imported for the answer."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(value, torch.nn.Module)


def default_names(cluster: Cluster) -> tuple[object, ...]:
    """Return what torch and accelerate call the devices of a cluster: GPUs by number, everything else ``cpu``."""
    names: list[object] = []
    num_gpus = 0
    for device in cluster.devices:
        is_cpu = device.kind == "cpu"
        names.append("cpu" if is_cpu else num_gpus)
        num_gpus += not is_cpu
    return tuple(names)


def place_torch(
    module: Torch,
    args: Sequence[object],
    kwargs: Mapping[str, object],
    devices: Devices,
    policy: str,
    params: Mapping[str, Json] | None,
    budget: Budget,
    setting: Setting,
    optimizer_state: float | None = None,
) -> TorchPlacement:
    """Export a module on example arguments and plan its operations, or its training step, on devices."""
    if optimizer_state is not None and not optimizer_state >= 0:
        raise InvalidInput(f"{optimizer_state} must not be negative", field="optimizer_state")
    program = replace(export_module(module, args, kwargs), optimizer_state=optimizer_state)
    problem = _problem(program, devices.cluster)
    result = _planned_within_memory(problem, policy, params, budget, setting)
    return TorchPlacement(result, program, remarks=devices.notes, budget=budget)


def _problem(program: TorchProgram, cluster: Cluster) -> Problem:
    """Return the operations with costs for the kinds of a cluster."""
    models, basis = costs_of(cluster)
    return Problem.of(from_torch_program(program, rooflines=models, basis=basis), cluster)


def _planned_within_memory(
    problem: Problem, policy: str, params: Mapping[str, Json] | None, budget: Budget, setting: Setting
) -> PlanResult:
    """Plan with a policy; where its own plan exceeds a limit, take the best contiguous ranges if they are faster.

    Raises
    ------
    Infeasible
        Neither the policy, nor its repair, nor contiguous ranges fit.
    """
    try:
        result = evaluate(problem, policy, params=params, budget=budget, setting=setting)
    except Infeasible:
        if not has_memory_limit(problem):
            raise
        chain = best_chain(problem)
        if chain is None:
            raise
        return _as_policy(problem, chain, policy, params, budget, setting)
    if REPAIR not in result.plan.info:
        return result
    chain = best_chain(problem)
    if chain is None:
        return result
    try:
        other = _as_policy(problem, chain, policy, params, budget, setting)
    except Infeasible:
        return result
    return other if other.makespan_s < result.makespan_s else result


def _as_policy(
    problem: Problem, chain: Plan, policy: str, params: Mapping[str, Json] | None, budget: Budget, setting: Setting
) -> PlanResult:
    found = evaluate(problem, lambda _problem, _budget: chain, budget=budget, setting=setting)
    plan = replace(found.plan, info={**found.plan.info, CONTIGUOUS: True})
    return replace(found, policy=policy, params=dict(params or {}), plan=plan)
