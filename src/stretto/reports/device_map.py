"""What a device map of accelerate can say about a placed PyTorch module, and what it cannot.

``dispatch_model`` moves the inputs of every module in the map to the module's device. What runs between such modules
(a residual connection in the forward function of their parent) runs where its operands are, and fails where these are
on different devices. Weights of the root itself, and the arguments, are on the main device: that of the first entry.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from itertools import pairwise
from typing import TypeAlias

from stretto.files.graphs.pytorch.torch_cost import Torch
from stretto.files.graphs.pytorch.torch_export import TorchProgram, module_path

#: Modules and what accelerate calls their devices.
DeviceNames: TypeAlias = dict[str, object]
Range: TypeAlias = tuple[int, int]
#: Values that are on the main device: weights of the root, and the arguments of the call.
_AT_ROOT = ("get_attr", "placeholder")


def conflicts(program: TorchProgram, assignment: Sequence[int]) -> list[Range]:
    """Return the ranges of groups that must be one operation before a device map can hold the assignment."""
    found: list[Range] = []
    for first, last in sorted(_entries(program, assignment)[1]):
        if found and first <= found[-1][1]:
            found[-1] = (found[-1][0], max(last, found[-1][1]))
        else:
            found.append((first, last))
    return [pair for pair in found if pair[0] < pair[1]]


def between_cuts(program: TorchProgram) -> list[Range]:
    """Return the ranges of groups between the places where a device map can hold a cut into two."""
    number = len(program.groups)
    cuts = [at for at in range(1, number) if not conflicts(program, [0] * at + [1] * (number - at))]
    return [(first, last - 1) for first, last in pairwise((0, *cuts, number)) if last - first > 1]


def module_devices(program: TorchProgram, assignment: Sequence[int], names: Sequence[object]) -> DeviceNames:
    """Return a device for every module that needs one, by first use; weights that nothing uses go with the first."""
    entries, _ = _entries(program, assignment)
    found = {path: names[device] for path, device in entries.items()}
    first = names[assignment[0]]
    for name in program.original.state_dict():
        if _owner(found, name) is None:
            found[name if "." not in name else name.rpartition(".")[0]] = first
    return found


def _entries(program: TorchProgram, assignment: Sequence[int]) -> tuple[dict[str, int], list[Range]]:
    """Return the modules that need an entry with their devices, and the ranges that no map can hold."""
    owners = _outermost(_weight_users(program))
    while True:
        entries, torn = _devices(program, owners, assignment)
        asked = _asked(program, owners, entries, assignment)
        more = {path for path, group in asked if path and _is_whole(program, path, assignment)}
        if not more:
            return entries, torn + [_torn(program, path, group) for path, group in asked]
        owners = _outermost(owners | more)


def _weight_users(program: TorchProgram) -> set[str]:
    """Return the modules whose own operators read weights; the root is none of them."""
    return {module_path(node) for _, node in _nodes(program) if _reads_weights(node)} - {""}


def _reads_weights(node: Torch) -> bool:
    return any(arg.op == "get_attr" for arg in node.all_input_nodes)


def _nodes(program: TorchProgram) -> Iterator[tuple[int, Torch]]:
    return ((number, node) for number, group in enumerate(program.groups) for node in group.nodes)


def _outermost(paths: Collection[str]) -> set[str]:
    known = set(paths)
    return {path for path in known if _owner(known, path.rpartition(".")[0]) is None}


def _owner(paths: Collection[str], path: str) -> str | None:
    """Return the module of ``paths`` that a module is, or is inside of."""
    while path:
        if path in paths:
            return path
        path = path.rpartition(".")[0]
    return None


def _devices(program: TorchProgram, owners: set[str], assignment: Sequence[int]) -> tuple[dict[str, int], list[Range]]:
    """Return the device of each module with an entry; the ranges of those that have several."""
    groups: dict[str, list[int]] = {}
    for number, node in _nodes(program):
        owner = _owner(owners, module_path(node))
        if owner is not None:
            groups.setdefault(owner, []).append(number)
    torn = [(min(own), max(own)) for own in groups.values() if len({assignment[group] for group in own}) > 1]
    return {path: assignment[min(own)] for path, own in groups.items()}, torn


def _asked(
    program: TorchProgram, owners: set[str], entries: dict[str, int], assignment: Sequence[int]
) -> list[tuple[str, int]]:
    """Return the nodes between modules whose operands would be on different devices: their modules and groups."""
    place: dict[Torch, int] = {}
    found: list[tuple[str, int]] = []
    for number, node in _nodes(program):
        owner = _owner(owners, module_path(node))
        if owner is not None:
            place[node] = entries[owner]
            continue
        operands = {place[arg] for arg in node.all_input_nodes if arg in place}
        operands |= {assignment[0]} if any(arg.op in _AT_ROOT for arg in node.all_input_nodes) else set()
        if len(operands) > 1:
            found.append((module_path(node), number))
        place[node] = min(operands, default=assignment[0])
    return found


def _inside(program: TorchProgram, path: str) -> list[int]:
    """Return the groups that nodes of a module are in."""
    return sorted({number for number, node in _nodes(program) if _owner({path}, module_path(node)) is not None})


def _is_whole(program: TorchProgram, path: str, assignment: Sequence[int]) -> bool:
    return len({assignment[group] for group in _inside(program, path)}) == 1


def _torn(program: TorchProgram, path: str, number: int) -> Range:
    """Return the range of a module; at the root, from the first group whose value the node's group reads."""
    if path:
        inside = _inside(program, path)
        return inside[0], inside[-1]
    reads = [arg for node in program.groups[number].nodes for arg in node.all_input_nodes]
    first = min((program.group_of[arg] for arg in reads if arg in program.group_of), default=0)
    uses_root = any(arg.op in _AT_ROOT for arg in reads)
    return (0 if uses_root else first), number
