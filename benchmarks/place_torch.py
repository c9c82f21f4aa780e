"""Placements against accelerate's.

    python benchmarks/place_torch.py [--seconds 2] [--seed 0]
    python benchmarks/place_torch.py --drawn 10         # sizes, GPUs and limits drawn by the seed, ten cases a model

Three PyTorch modules with random weights (a transformer encoder, a ResNet, an MLP) are placed on GPUs under several
memory limits. The opponent is ``accelerate.infer_auto_device_map`` in its best form: filled or with
``get_balanced_memory``, over all orders of the GPUs, with and without ``no_split_module_classes``. Its maps are
executed by the same simulator, with the same durations, links and memory. It does not count activations itself, so it
is told of several parts of the limits, and the best map that runs counts. Where it leaves modules on the host
(``cpu``), each step copies their weights to its first GPU, which runs them: that is what ``dispatch_model`` does.
Stretto's time is that of the placement which its own device map holds (``placement.by_module``). Costs are assumed
(roofline).
"""

from __future__ import annotations

import argparse
import logging
from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import pairwise, permutations, product
from typing import Any, NamedTuple

import numpy as np

import stretto
from stretto.core.plan import Plan
from stretto.core.problem import Problem
from stretto.errors import Infeasible, StrettoError
from stretto.files.graphs.pytorch.torch_cost import num_bytes
from stretto.files.graphs.pytorch.torch_export import module_path
from stretto.graphs.simulator import simulate

#: Bytes per second between the host and a GPU: 16 lanes of the third generation of PCI Express.
HOST_LINK = 16e9
#: Parts of the limits that accelerate is told of, because it leaves nothing for activations; the best one counts.
HEADROOM = (1.0, 0.95, 0.9, 0.85, 0.8)
MODELS = ("encoder", "resnet", "mlp")
#: GPUs and their links; two of the clusters have a fast and a slow kind.
CLUSTERS = {
    "2 alike": "gpu:2@16GB/s",
    "3 unlike": "gpu:1x2.0,gpu:2x1.0@16GB/s",
    "slow first": "gpu:1x0.5,gpu:2x1.0@16GB/s",
}
#: Memory of each GPU as a share of all parameters; the GPUs together hold all of them and little more.
SHARES = {"2 alike": (0.54, 0.6, 0.8), "3 unlike": (0.44, 0.6), "slow first": (0.44, 0.6)}
#: Drawn limits: memory of all GPUs together as a multiple of the parameters.
DRAWN_MEMORY = (1.15, 2.0)


class Sizes(NamedTuple):
    """How large the modules are."""

    layers: int = 6
    features: int = 512
    blocks: tuple[int, ...] = (64, 64, 128, 128, 256, 256, 512, 512)
    linear: tuple[int, ...] = (2048, 4096, 2048, 3072, 2048)  # wide layers first: filling leaves the last GPU out


class Case(NamedTuple):
    """One line of the table."""

    model: str
    sizes: Sizes
    cluster: str
    devices: str
    share: float


def chosen() -> Iterator[Case]:
    """Yield the cases that were chosen by hand."""
    for model, (cluster, devices) in product(MODELS, CLUSTERS.items()):
        for share in SHARES[cluster]:
            yield Case(model, Sizes(), cluster, devices, share)


def drawn(seed: int, count: int) -> Iterator[Case]:
    """Yield cases whose sizes, GPUs and limits are drawn before anything is placed."""
    rng = np.random.default_rng([seed, 31])
    for model, number in product(MODELS, range(count)):
        stages = (64, 128, 256, 512)
        sizes = Sizes(
            int(rng.integers(4, 13)),
            int(rng.choice([256, 512, 768])),
            tuple(width for width in stages for _ in range(rng.integers(1, 4))),
            (1024, *(int(width) for width in rng.choice([1024, 2048, 3072, 4096], rng.integers(3, 8))), 1024),
        )
        speeds = [float(speed) for speed in rng.choice([0.5, 1.0, 2.0], rng.integers(2, 5))]
        link = int(rng.choice([8, 16, 32]))
        devices = ",".join(f"gpu:1x{speed}" for speed in speeds) + f"@{link}GB/s"
        share = float(rng.uniform(*DRAWN_MEMORY)) / len(speeds)
        yield Case(model, sizes, f"drawn {number}", devices, share)


def module_of(case: Case) -> tuple[Any, tuple[Any, ...], list[str]]:
    """Return the module, example arguments, and the classes that accelerate should not split."""
    import torch
    from torch import nn

    class Block(nn.Module):  # type: ignore[misc,name-defined]
        def __init__(self, num_in: int, num_out: int, stride: int) -> None:
            super().__init__()
            self.conv1, self.norm1 = nn.Conv2d(num_in, num_out, 3, stride, 1, bias=False), nn.BatchNorm2d(num_out)
            self.conv2, self.norm2 = nn.Conv2d(num_out, num_out, 3, 1, 1, bias=False), nn.BatchNorm2d(num_out)
            self.shortcut = nn.Conv2d(num_in, num_out, 1, stride) if num_in != num_out else nn.Identity()

        def forward(self, x: Any) -> Any:
            y = torch.relu(self.norm1(self.conv1(x)))
            return torch.relu(self.norm2(self.conv2(y)) + self.shortcut(x))

    sizes = case.sizes
    if case.model == "encoder":
        layer = nn.TransformerEncoderLayer(sizes.features, 8, 4 * sizes.features, batch_first=True)
        encoder = nn.TransformerEncoder(layer, sizes.layers, enable_nested_tensor=False)
        return encoder.eval(), (torch.zeros(2, 128, sizes.features),), ["TransformerEncoderLayer"]
    if case.model == "mlp":
        linear = [part for a, b in pairwise(sizes.linear) for part in (nn.Linear(a, b), nn.GELU())]
        return nn.Sequential(*linear), (torch.zeros(16, sizes.linear[0]),), []
    blocks = [Block(a, b, 1 + (a != b)) for a, b in zip((64, *sizes.blocks), sizes.blocks, strict=False)]
    stem = [nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64), nn.ReLU(), nn.MaxPool2d(3, 2, 1)]
    resnet = nn.Sequential(*stem, *blocks, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(512, 1000))
    return resnet.eval(), (torch.zeros(1, 3, 128, 128),), ["Block"]


def maps(module: Any, memory: list[int], no_split: list[str]) -> Iterator[tuple[dict[str, Any], int]]:
    """Yield what accelerate proposes and its main GPU: filled or balanced, in every order of the GPUs, split or not."""
    from accelerate import infer_auto_device_map
    from accelerate.utils import get_balanced_memory

    host = sum(p.numel() * p.element_size() for p in module.parameters()) * 4
    for order in permutations(range(len(memory))):
        for classes, share in product((no_split, []), HEADROOM):
            filled: dict[Any, Any] = {place: int(memory[gpu] * share) for place, gpu in enumerate(order)}
            filled["cpu"] = host
            for limits in (filled, get_balanced_memory(module, dict(filled), no_split_module_classes=classes)):
                found = infer_auto_device_map(module, max_memory=dict(limits), no_split_module_classes=classes)
                yield {path: d if d in ("cpu", "disk") else order[d] for path, d in found.items()}, order[0]


def map_seconds(placement: Any, names: Mapping[str, Any], main: int) -> tuple[float, float]:
    """Return the simulated step time of a device map, and the bytes that it keeps on the host."""
    problem, program = placement.result.problem, placement.program
    devices = np.zeros(problem.num_tasks, dtype=np.int32)
    extra = np.zeros(problem.num_tasks)
    for number, group in enumerate(program.groups):
        found = _entry(names, module_path(next((n for n in group.nodes if n.all_input_nodes), group.nodes[0])))
        found = _entry(names, group.path) if found is None else found
        devices[number] = found if isinstance(found, int) else main
        if not isinstance(found, int) and found is not None:
            extra[number] = sum(num_bytes(weight.meta["val"]) for weight in group.weights)
    graph, cluster = problem.graph, problem.cluster
    speeds = np.array([device.speed for device in cluster.devices])[devices]
    slowed = replace(
        graph,
        kind_duration_s=graph.kind_duration_s + (extra / HOST_LINK * speeds)[:, None],  # a copy takes no less there
        resident_bytes=np.where(extra > 0, 0.0, graph.resident_bytes),
        memory_bytes=graph.memory_bytes + extra,
    )
    try:
        schedule = simulate(Problem.of(slowed, cluster), Plan(devices, graph.topo))
    except StrettoError:  # the map and its activations do not fit
        return float("inf"), float(extra.sum())
    return schedule.makespan_s, float(extra.sum())


def _entry(names: Mapping[str, Any], path: str) -> Any:
    while path not in names:
        if not path:
            return None
        path = path.rpartition(".")[0]
    return names[path]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=2.0, help="time of the search for each placement")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--policy", default="annealing")
    parser.add_argument("--drawn", type=int, default=0, help="cases for each model, drawn by the seed")
    options = parser.parse_args()
    logging.disable(logging.WARNING)  # accelerate misses the GPUs, which only exist in simulation
    print(f"{'model':8} {'cluster':10} {'share':>5} {'accelerate':>11} {'on host':>9} {'stretto':>10} {'ratio':>6}")
    ratios = []
    for case in drawn(options.seed, options.drawn) if options.drawn else chosen():
        module, args, no_split = module_of(case)
        limit = int(case.share * sum(p.numel() * p.element_size() for p in module.parameters()))
        line = f"{case.model:8} {case.cluster:10} {case.share:5.2f}"
        try:
            placement = stretto.place(
                module, *args, devices=case.devices, policy=options.policy, memory=limit,
                time_limit_s=options.seconds, seed=options.seed,
            )  # fmt: skip
            ours = placement.by_module.makespan_s
        except Infeasible:  # accelerate could keep weights on the host, which is not planned here
            print(f"{line} no placement was found that fits with its activations", flush=True)
            continue
        num = placement.result.problem.num_devices
        theirs, host = min(map_seconds(placement, *found) for found in maps(module, [limit] * num, no_split))
        ratios.append(ours / theirs)
        print(
            f"{line} {theirs * 1e3:8.3f} ms {host / 1e6:6.1f} MB {ours * 1e3:7.3f} ms {ours / theirs:6.3f}", flush=True
        )
    worst, best = max(ratios), min(ratios)
    print(f"{len(ratios)} cases: at most {worst:.3f} of accelerate's time, at best {best:.3f}")


if __name__ == "__main__":
    main()
