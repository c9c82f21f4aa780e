"""A placed PyTorch module as a module: a piece of its graph per stretch of a device, ``Tensor.to`` at the cuts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from stretto.core.graph import TaskGraph
from stretto.core.schedule import Schedule
from stretto.engines.stretches import cut_stretches
from stretto.errors import InvalidInput
from stretto.files.graphs.pytorch.torch_cost import Torch, tensors
from stretto.files.graphs.pytorch.torch_export import TorchProgram, import_torch


@dataclass(frozen=True, eq=False)
class TorchStretch:
    """Consecutive groups of one device: what they read from elsewhere, what others read, and the compiled graph."""

    device: int
    groups: tuple[int, ...]
    reads: tuple[Torch, ...]
    writes: tuple[Torch, ...]
    weights: tuple[Torch, ...]
    run: Torch


def place_module(program: TorchProgram, graph: TaskGraph, schedule: Schedule, devices: Sequence[object]) -> Torch:
    """Return a ``torch.nn.Module`` that runs each group of a program on its device.

    Its parameters and buffers have the names of the original's; those that are already on their device are the
    original's own, so that an optimizer of either trains both. A parameter that several devices use lives on the
    first of them and is copied to the others at each call, so that its gradient is complete.
    """
    torch = import_torch("running placed PyTorch modules")
    places = [torch.device(device) if not isinstance(device, int) else torch.device("cuda", device)
              for device in devices]  # fmt: skip
    cuts = tuple(
        _stretch(torch, program, stretch.device, stretch.tasks, places[stretch.device])
        for stretch in cut_stretches(graph, schedule)
    )
    home = _homes(program, cuts)
    placed = _placed_class(torch)()
    placed.stretches, placed.devices, placed.program = cuts, tuple(places), program
    placed.home = {weight: places[device] for weight, device in home.items()}
    _adopt_weights(torch, placed, program, places[cuts[0].device])
    placed.num_cuts = sum(1 for cut in cuts for value in cut.reads if value.op != "placeholder")
    placed.train(program.original.training)
    return placed


def _stretch(torch: Torch, program: TorchProgram, device: int, run: tuple[int, ...], place: Torch) -> TorchStretch:
    inside = {node for group in run for node in program.groups[group].nodes}
    nodes = [node for group in run for node in program.groups[group].nodes]
    args = dict.fromkeys(arg for node in nodes for arg in node.all_input_nodes if arg not in inside)
    reads = tuple(arg for arg in args if arg.op != "get_attr")
    weights = tuple(arg for arg in args if arg.op == "get_attr")
    writes = tuple(node for node in nodes if any(user not in inside for user in node.users))
    graph = torch.fx.Graph()
    copies = {arg: graph.placeholder(arg.name) for arg in (*reads, *weights)}
    for node in nodes:
        copies[node] = graph.node_copy(node, copies.__getitem__)
        if "device" in node.kwargs:  # operators that make tensors name the device that they were exported on
            copies[node].kwargs = {**copies[node].kwargs, "device": place}
    graph.output(tuple(copies[node] for node in writes))
    return TorchStretch(device, run, reads, writes, weights, torch.fx.GraphModule(torch.nn.Module(), graph))


def _homes(program: TorchProgram, cuts: Sequence[TorchStretch]) -> dict[Torch, int]:
    """Return the device that keeps each weight: where a buffer is written, else where it is first used."""
    home: dict[Torch, int] = {}
    for cut in cuts:
        for weight in cut.weights:
            home.setdefault(weight, cut.device)
    for cut in cuts:
        for group in cut.groups:
            for node in program.groups[group].nodes:
                if str(node.target) == "aten.copy_.default" and node.args[0].op == "get_attr":
                    home[node.args[0]] = cut.device
    return home


def _adopt_weights(torch: Torch, placed: Torch, program: TorchProgram, rest: Torch) -> None:
    """Give the module the tensors of the program under their own names, each on its device; unused ones on ``rest``."""
    where = {str(weight.target): place for weight, place in placed.home.items()}
    moved: dict[int, Torch] = {}
    of_tensor = {id(_attribute(program.flat, name)): place for name, place in where.items()}
    named = [(name, value, True) for name, value in program.original.named_parameters(remove_duplicate=False)]
    named += [(name, value, False) for name, value in program.original.named_buffers(remove_duplicate=False)]
    known = {name for name, _, _ in named}
    named += [(name, _attribute(program.flat, name), False) for name in where if name not in known]
    for name, value, is_parameter in named:
        place = of_tensor.get(id(value), where.get(name, rest))
        if id(value) not in moved:
            with torch.no_grad():
                there = value.to(place)
            if there is not value and is_parameter:
                there = torch.nn.Parameter(there, requires_grad=value.requires_grad)
            moved[id(value)] = there
        _register(torch, placed, name, moved[id(value)], is_parameter, name in known)


def _attribute(module: Torch, name: str) -> Torch:
    for part in name.split("."):
        module = getattr(module, part)
    return module


def _register(torch: Torch, root: Torch, name: str, value: Torch, is_parameter: bool, is_state: bool) -> None:
    """Register a tensor under a dotted name, with plain modules on the way."""
    *path, last = name.split(".")
    owner = root.weights
    for part in path:
        if part not in owner._modules:
            owner.add_module(part, torch.nn.Module())
        owner = owner._modules[part]
    if is_parameter:
        owner.register_parameter(last, value)
    else:
        owner.register_buffer(last, value, persistent=is_state)


def _placed_class(torch: Torch) -> Torch:
    class PlacedModule(torch.nn.Module):  # type: ignore[misc]  # torch is an extra
        """Runs the stretches in order; queues of different devices overlap, because PyTorch does not wait for them."""

        def __init__(self) -> None:
            super().__init__()
            self.weights = torch.nn.Module()

        def forward(self, *args: Torch, **kwargs: Torch) -> Torch:
            program = self.program
            values = dict(zip(_inputs(program), _flat_arguments(torch, program, args, kwargs), strict=True))
            output = next(node for node in program.flat.graph.nodes if node.op == "output")
            last = _last_uses(self.stretches, output)
            for number, cut in enumerate(self.stretches):
                place = self.devices[cut.device]
                operands = [_moved(torch, values[node], place) for node in cut.reads]
                operands += [_moved(torch, _attribute(self.weights, str(node.target)), place) for node in cut.weights]
                values.update(zip(cut.writes, cut.run(*operands), strict=True))
                for node in last.get(number, ()):
                    del values[node]
            flat = torch.fx.node.map_arg(output.args[0], lambda node: self._result(values, node))
            return torch.utils._pytree.tree_unflatten(list(flat), program.out_spec)

        def _result(self, values: Mapping[Torch, Torch], node: Torch) -> Torch:
            return _attribute(self.weights, str(node.target)) if node.op == "get_attr" else values[node]

    return PlacedModule


def _last_uses(cuts: Sequence[TorchStretch], output: Torch) -> dict[int, list[Torch]]:
    """Return which values nobody reads after each stretch."""
    last: dict[Torch, int] = {node: number for number, cut in enumerate(cuts) for node in cut.reads}
    kept = set(output.all_input_nodes)
    ends: dict[int, list[Torch]] = {}
    for node, number in last.items():
        if node not in kept:
            ends.setdefault(number, []).append(node)
    return ends


def _inputs(program: TorchProgram) -> list[Torch]:
    return [node for node in program.flat.graph.nodes if node.op == "placeholder"]


def _flat_arguments(torch: Torch, program: TorchProgram, args: Sequence[Torch], kwargs: Mapping[str, Torch]) -> Torch:
    """Return the leaves of the arguments; raise where they differ in form, shape or type from the example's."""
    leaves, spec = torch.utils._pytree.tree_flatten((tuple(args), dict(kwargs)))
    if spec != program.in_spec:
        raise InvalidInput(
            "the arguments do not have the form of those that the module was placed with", field=program.name
        )
    for node, leaf in zip(_inputs(program), leaves, strict=True):
        example = next(tensors(node.meta.get("val")), None)
        if example is not None and (tuple(leaf.shape), leaf.dtype) != (tuple(example.shape), example.dtype):
            raise InvalidInput(
                f"argument {node.name!r} is {leaf.dtype}{list(leaf.shape)}, but the module was placed with "
                f"{example.dtype}{list(example.shape)}: place it again for other shapes",
                field=program.name,
            )
    return leaves


def _moved(torch: Torch, value: Torch, place: Torch) -> Torch:
    return value.to(place, non_blocking=True) if isinstance(value, torch.Tensor) else value
