"""Small named racks and streams that the tests share."""

from __future__ import annotations

import numpy as np

from stretto.core.machine_presets import preset
from stretto.racks.kernels.state import Streams
from stretto.racks.machine_work import RackModel, rack_model
from stretto.racks.workloads.graphs import PAPER_MIX, SHUFFLE_MIX
from stretto.racks.workloads.kernels import PAPER_KERNELS, SHUFFLES
from stretto.racks.workloads.streams import ForeignLoad, StreamSpec, streams_of


def small_rack(num_instances: int = 4, seed: int = 1, num_jobs: int = 4) -> tuple[RackModel, Streams]:
    model = rack_model(preset("small-rack"), PAPER_KERNELS)
    return model, streams_of(model, PAPER_MIX, StreamSpec(num_jobs=num_jobs), num_instances=num_instances, seed=seed)


def two_nics(num_instances: int = 4, seed: int = 1, num_jobs: int = 12) -> tuple[RackModel, Streams]:
    model = rack_model(preset("two-nics"), SHUFFLES, kinds=("nic",))
    levels = {"pcie-switch": (1.0, 2.5), "memory": (0.05, 0.3)}
    spec = StreamSpec(num_jobs=num_jobs, utilization=0.3, foreign=ForeignLoad(0.5, levels, 5.0))
    return model, streams_of(model, SHUFFLE_MIX, spec, num_instances=num_instances, seed=seed)


def random_action(mask: np.ndarray, rng: np.random.Generator) -> int:
    return int(rng.choice(np.flatnonzero(mask)))
