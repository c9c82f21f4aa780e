"""PyTorch modules through ``torch.export``: one task per call of a leaf module, durations from a roofline."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from stretto.core.builder import GraphBuilder
from stretto.core.graph import TaskGraph
from stretto.core.provenance import DURATIONS, IN_MEMORY, OBJECTS, ROOFLINE
from stretto.errors import InvalidInput, MissingExtra
from stretto.files.graphs.pytorch import torch_training
from stretto.files.graphs.pytorch.torch_cost import Torch, is_cheap, node_cost, num_bytes, op_name
from stretto.files.graphs.roofline import ROOFLINES, CostModel, OpCost, durations

#: Key of ``TaskGraph.meta``: bytes of parameters that several tasks use, counted at each of them.
SHARED_BYTES = "shared_parameter_bytes"


@dataclass(frozen=True, eq=False)
class TorchGroup:
    """Nodes of a graph of torch that are one task.

    Attributes
    ----------
    path
        The module that the first operator with arithmetic belongs to, as ``named_modules`` calls it.
    """

    name: str
    path: str
    nodes: tuple[Torch, ...]

    @cached_property
    def weights(self) -> tuple[Torch, ...]:
        """The ``get_attr`` nodes of the parameters, buffers and constants that the group reads."""
        return tuple(dict.fromkeys(arg for node in self.nodes for arg in node.all_input_nodes if arg.op == "get_attr"))


@dataclass(frozen=True, eq=False)
class TorchProgram:
    """An exported module without calls and side effects, in groups: group ``i`` is task ``i`` of its graph.

    Values only go from groups to later groups, so every range of groups can be joined.
    """

    name: str
    #: The module that was exported, and its flat ``torch.fx.GraphModule``.
    original: Torch
    flat: Torch
    #: The pytrees of ``(args, kwargs)`` and of the result.
    in_spec: Torch
    out_spec: Torch
    groups: tuple[TorchGroup, ...]
    #: Bytes of optimizer state per byte of a trained weight; None where the module is only called.
    optimizer_state: float | None = None

    @cached_property
    def group_of(self) -> Mapping[Torch, int]:
        """The group of each node that computes."""
        return {node: number for number, group in enumerate(self.groups) for node in group.nodes}

    def joined(self, ranges: Iterable[tuple[int, int]]) -> TorchProgram:
        """Return the program with the groups of each range (first, last) as one; ranges must not overlap."""
        last = dict(ranges)
        groups: list[TorchGroup] = []
        number = 0
        while number < len(self.groups):
            end = last.get(number, number)
            part = self.groups[number : end + 1]
            nodes = tuple(sorted((node for group in part for node in group.nodes), key=self._position.__getitem__))
            groups.append(part[0] if len(part) == 1 else replace(part[0], nodes=nodes))
            number = end + 1
        return replace(self, groups=tuple(groups))

    @cached_property
    def _position(self) -> Mapping[Torch, int]:
        return {node: place for place, node in enumerate(self.flat.graph.nodes)}


def import_torch(what: str) -> Torch:
    """Return torch, or say which extra has it."""
    try:
        import torch
    except ImportError:
        raise MissingExtra("torch", "torch", what) from None
    return torch


def module_path(node: Torch) -> str:
    """Return the innermost module that a node was made in, such as ``layers.0.linear1``; "" for the whole."""
    stack = node.meta.get("nn_module_stack") or {}
    return next((str(path) for path, _ in reversed(list(stack.values()))), "")


def _call(node: Torch) -> str:
    """Return which call of its innermost module a node belongs to; a second call has another key."""
    stack = node.meta.get("nn_module_stack") or {}
    return next(reversed(list(stack)), "")


def export_module(module: Torch, args: Sequence[object], kwargs: Mapping[str, object] | None = None) -> TorchProgram:
    """Export a module on example arguments; shapes are those of the arguments, and the module stays as it was."""
    torch = import_torch("placing PyTorch modules")
    name = type(module).__name__
    try:
        with torch.no_grad(), warnings.catch_warnings():
            warnings.simplefilter("ignore", FutureWarning)  # torch about itself
            exported = torch.export.export(module, tuple(args), dict(kwargs or {})).run_decompositions({})
    except Exception as error:  # whatever the module, or torch on its behalf, finds wrong
        reason = " ".join(str(error).split())[:300]
        raise InvalidInput(
            f"cannot be exported by torch.export: {type(error).__name__}: {reason}", field=f"module {name}"
        ) from error
    flat = exported.module(check_guards=False)
    spec = exported.call_spec
    return TorchProgram(name, module, flat, spec.in_spec, spec.out_spec, tuple(_group(name, flat.graph.nodes)))


def _group(name: str, nodes: Iterable[Torch]) -> list[TorchGroup]:
    """Put nodes into groups: a call of a leaf module, and the cheap operators that follow it.

    A node never joins a group before one that it reads from, so values only go to later groups.
    """
    work = [node for node in nodes if node.op == "call_function"]
    if not work:
        raise InvalidInput("it has no operations that could be placed", field=f"module {name}")
    paths = {module_path(node) for node in work}
    inner = {path for path in paths if path and not any(other.startswith(f"{path}.") for other in paths)}
    busy = {_call(node) for node in work if module_path(node) in inner and not is_cheap(node)}
    group_of: dict[Torch, int] = {}
    members: list[list[Torch]] = []
    of_call: dict[str, int] = {}
    for node in work:
        latest = max((group_of[arg] for arg in node.all_input_nodes if arg in group_of), default=-1)
        call = _call(node)
        chosen = of_call.get(call, -1) if call in busy else latest if is_cheap(node) else -1
        if chosen < max(latest, 0):
            chosen = len(members)
            members.append([])
        of_call[call] = group_of[node] = chosen
        members[chosen].append(node)
    return _named(members)


def _named(members: Sequence[Sequence[Torch]]) -> list[TorchGroup]:
    """Name groups by their modules; a second group of a module gets a number."""
    groups: list[TorchGroup] = []
    seen: dict[str, int] = {}
    for nodes in members:
        lead = next((node for node in nodes if not is_cheap(node)), nodes[0])
        path = module_path(lead)
        name = path or str(lead.name)
        seen[name] = seen.get(name, 0) + 1
        groups.append(TorchGroup(name if seen[name] == 1 else f"{name}#{seen[name]}", path, tuple(nodes)))
    return groups


def from_torch_program(
    program: TorchProgram, *, rooflines: Mapping[str, CostModel] = ROOFLINES, basis: str = ROOFLINE
) -> TaskGraph:
    """Return the graph of a program: task ``i`` is its group ``i``.

    Parameters and buffers are resident bytes of the tasks that read them; arguments of the module and values inside
    a group are bytes that the task holds while it runs. Each operator is a kernel of its own, as PyTorch runs it.
    With ``program.optimizer_state`` a task is the forward and the backward pass of its group.
    """
    duration, traffic = 1.0, 1.0
    if program.optimizer_state is not None:
        duration, traffic = torch_training.STEP_DURATION, torch_training.STEP_TRAFFIC
    build = GraphBuilder(program.name)
    handles: dict[Torch, int] = {}
    total = OpCost()
    for group, resident in zip(program.groups, _resident_bytes(program), strict=True):
        costs = [cost for node in group.nodes if (cost := node_cost(node)) is not None]
        total = sum(costs, total)
        seconds = {kind: s * duration for kind, s in _sum_of_durations(costs, rooflines).items()}
        lead = next((node for node in group.nodes if not is_cheap(node)), group.nodes[0])
        task = build.task(
            group.name,
            next(iter(seconds.values())),
            durations=seconds,
            resident_bytes=resident,
            memory_bytes=_inside_bytes(program, group),
            category=op_name(lead),
        )
        _connect(build, program, group, task, handles, traffic)
    users: dict[Torch, int] = {}
    for group in program.groups:
        for weight in group.weights:
            users[weight] = users.get(weight, 0) + 1
    shared = sum(num_bytes(weight.meta["val"]) for weight, count in users.items() if count > 1)
    build.meta |= {DURATIONS: basis, OBJECTS: IN_MEMORY}
    build.meta |= {"total_flops": total.flops, "total_bytes": total.num_bytes, SHARED_BYTES: shared}
    return build.graph()


def _resident_bytes(program: TorchProgram) -> list[float]:
    """Return what stays on the device of each group: its weights and, for training, what :mod:`torch_training` adds."""
    if program.optimizer_state is None:
        return [sum(num_bytes(weight.meta["val"]) for weight in group.weights) for group in program.groups]
    trained = {name for name, parameter in program.flat.named_parameters() if parameter.requires_grad}
    factor = torch_training.resident_factor(program.optimizer_state)
    saved = torch_training.saved_bytes([group.nodes for group in program.groups])
    return [
        kept + sum(num_bytes(w.meta["val"]) * (factor if str(w.target) in trained else 1.0) for w in group.weights)
        for group, kept in zip(program.groups, saved, strict=True)
    ]


def _sum_of_durations(costs: Sequence[OpCost], rooflines: Mapping[str, CostModel]) -> dict[str, float]:
    total = dict.fromkeys(rooflines, 0.0)
    for cost in costs:
        for kind, seconds in durations(cost, rooflines).items():
            total[kind] += seconds
    return total


def _connect(
    build: GraphBuilder, program: TorchProgram, group: TorchGroup, task: int, handles: dict[Torch, int], traffic: float
) -> None:
    """Add what a group reads from other groups, and the values that other groups read from it."""
    for node in group.nodes:
        for arg in node.all_input_nodes:
            if arg in handles and program.group_of[arg] != task:
                build.read(task, handles[arg])
    for node in group.nodes:
        if any(program.group_of.get(user, task) != task for user in node.users):
            handles[node] = build.object(task, num_bytes(node.meta.get("val")) * traffic)


def _inside_bytes(program: TorchProgram, group: TorchGroup) -> float:
    """Return the bytes of arguments that a group reads, and the most that is alive inside it at one moment.

    Values that leave the group are objects, which the simulator counts itself.
    """
    number = program.group_of[group.nodes[0]]
    arguments = {arg for node in group.nodes for arg in node.all_input_nodes if arg.op == "placeholder"}
    last = {arg: place for place, node in enumerate(group.nodes) for arg in node.all_input_nodes}
    alive: dict[Torch, float] = {}
    most = 0.0
    for place, node in enumerate(group.nodes):
        leaves = any(
            program.group_of.get(user, -1) != number or _passes_on(program, user, number) for user in node.users
        )
        if not leaves and node_cost(node) is not None and node in last:
            alive[node] = num_bytes(node.meta.get("val"))
        most = max(most, sum(alive.values()))
        for arg in node.all_input_nodes:
            if last[arg] == place:
                alive.pop(arg, None)
    return most + sum(num_bytes(arg.meta.get("val")) for arg in arguments)


def _passes_on(program: TorchProgram, node: Torch, number: int) -> bool:
    """Say whether a node gives the tensor that it reads another description, and that leaves the group."""
    return node_cost(node) is None and any(program.group_of.get(user, -1) != number for user in node.users)
