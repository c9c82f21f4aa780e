"""A placement as a Python file that needs torch alone: where each operator runs, and a function that runs it so."""

from __future__ import annotations

import json

from stretto.errors import InvalidInput
from stretto.reports.placement import Placement
from stretto.reports.torch_placement import TorchPlacement, default_names

_TEXT = '''"""{name} on {devices}: {seconds:.6g} s per call in simulation.

{notes}
Use: run = placed(module, args); result = run(*args)
"""

import torch

#: The number of the device that runs each node of the exported graph.
DEVICE_OF = {table}
DEVICES = {names}


def placed(module, args, kwargs=None, devices=DEVICES):
    """Return a function that runs the module with each operator on its device."""
    flat = torch.export.export(module, tuple(args), dict(kwargs or {{}})).run_decompositions({{}})
    places = [torch.device("cuda", d) if isinstance(d, int) else torch.device(d) for d in devices]
    graph = flat.module(check_guards=False)
    first = next(iter(DEVICE_OF.values()))

    def moved(value, place):
        return value.to(place) if isinstance(value, torch.Tensor) else value

    class Placed(torch.fx.Interpreter):
        def call_function(self, target, args, kwargs):
            place = places[DEVICE_OF.get(self.name, first)]
            if target is not torch.ops.aten.copy_.default:  # which updates a buffer where it is
                args, kwargs = torch.utils._pytree.tree_map(lambda value: moved(value, place), (args, kwargs))
            if "device" in kwargs:
                kwargs = dict(kwargs, device=place)
            return target(*args, **kwargs)

        def run_node(self, node):
            self.name = node.name
            return super().run_node(node)

    def run(*args, **kwargs):
        leaves, _ = torch.utils._pytree.tree_flatten((args, kwargs))
        found = Placed(graph).run(*leaves, enable_io_processing=False)
        return torch.utils._pytree.tree_unflatten(list(found), flat.call_spec.out_spec)

    return run
'''


def emit(placement: Placement) -> bytes:
    """Return the source of a module with ``placed(module, args)``."""
    if not isinstance(placement, TorchPlacement):
        raise InvalidInput("this is for PyTorch modules; the placement is of something else", field="--emit")
    program, assignment = placement.program, placement.plan.assignment.tolist()
    table = {str(node.name): assignment[number] for number, group in enumerate(program.groups) for node in group.nodes}
    cluster = placement.result.problem.cluster
    text = _TEXT.format(
        name=program.name,
        devices=cluster.name,
        seconds=placement.makespan_s,
        notes="\n".join(placement.notes),
        table=json.dumps(table, indent=4),
        names=list(default_names(cluster)),
    )
    return text.encode()
