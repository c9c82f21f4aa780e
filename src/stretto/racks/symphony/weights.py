"""The shapes of Symphony's weights; without jax, for those who only decide."""

from __future__ import annotations

from stretto.racks.kernels.features import NUM_KERNEL, NUM_PAIR, NUM_PROC
from stretto.racks.symphony.settings import NetSettings, NetShape


def weight_shapes(shape: NetShape, settings: NetSettings) -> dict[str, tuple[int, ...]]:
    """Return the shape of each array that ``network.init_params`` makes."""
    w, c = settings.width, settings.core
    shapes: dict[str, tuple[int, ...]] = {
        "proc_in": (NUM_PROC + 4, w),
        "kernel_in": (NUM_KERNEL, w),
        "kernel_name": (shape.num_kernels, w),
        "kernel_edge": (w, w),
        "kernel_node": (2 * w, w),
        "gate": (2 * w + c, 3 * c),
        "gate_bias": (3 * c,),
        "pair_proc": (w, c),
        "pair_kernel": (w, c),
        "pair_core": (c, c),
        "pair_edge": (NUM_PAIR, c),
        "pair_bias": (c,),
        "pair_out": (c, 2),
        "wait": (c, 1),
        "wait_bias": (1,),
        "wait_gap": (1,),
        "value": (c, c),
        "value_bias": (c,),
        "value_out": (c, 1),
    }
    if settings.is_believing:
        shapes["resource_in"] = (3 + 6, w)
        for turn in range(settings.rounds):
            shapes |= {f"edge{turn}": (2 * w, 2 * w), f"edge{turn}_out": (2 * w, w), f"node{turn}": (2 * w, w)}
    else:
        shapes |= {
            "counter0": (2 * shape.num_counters, 4 * w),
            "counter1": (4 * w, 2 * w),
            "counter2": (2 * w, w),
            "proc_name": (shape.num_procs, w),
            "actor": (c, shape.num_kernels * shape.num_procs),
        }
    return shapes
