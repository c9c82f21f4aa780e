"""The settings of the recurrent policies of one rack that the paper compares: sizes, layout, how they learn."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from stretto.core.csr import Ints
from stretto.errors import InvalidInput, UnknownName
from stretto.racks.kernels.features import NUM_KERNEL, NUM_PAIR, NUM_PROC
from stretto.racks.kernels.state import Streams
from stretto.racks.machine_work import RackModel

#: ``belief``: beliefs on the topology. ``rnn``: raw counters, no topology; the model-free opponent. One change each:
#: ``counters``: raw counters on the topology. ``dense``: beliefs, dense layers in place of the topology.
VARIANTS = ("belief", "rnn", "counters", "dense")
_MAX_SIZE = 4096
REWARDS = ("flow", "makespan", "inverse")
_KINDS = ("core", "memory", "pcie-switch", "root-complex", "socket-link", "nic")


@dataclass(frozen=True)
class RecurrentParams:
    """Constants that were chosen, not learned; each line says where the value came from."""

    #: Log ratio that stands for "no processor is idle" beside the best place of all: the largest that features hold.
    gap_none: float = 4.0
    #: Weight of that ratio for waiting. By hand; with it, two-nics went from 0.870 s to 0.851 s (32 streams, seed 0).
    gap_scale: float = 4.0
    #: Of the guide: weight of the tasks that a job has left. By hand, seen on validation streams of small-rack.
    guide_order: float = 0.1
    #: Of the guide: log ratio above which it waits for a faster processor. By hand, as guide_order.
    guide_patience: float = 0.3


PARAMS = RecurrentParams()


@dataclass(frozen=True)
class NetSettings:
    """Sizes.

    Attributes
    ----------
    width, core
        Units of embeddings, and of the recurrent core.
    rounds
        Rounds of messages over the topology.
    guide
        Weight of a rule's scores below the network's own: earliest completion as far as contention is known or
        believed, jobs with little left first, waiting for what is much faster. Zero learns from nothing.
    """

    variant: str = "belief"
    width: int = 16
    core: int = 32
    rounds: int = 2
    guide: float = 10.0

    def __post_init__(self) -> None:
        if self.variant not in VARIANTS:
            raise UnknownName("variant of Symphony", self.variant, VARIANTS)
        if min(self.width, self.core) < 1 or self.rounds < 0 or not self.guide >= 0:
            raise InvalidInput("width and core are at least 1, rounds and guide not negative", field="net")
        if max(self.width, self.core, self.rounds) > _MAX_SIZE or not self.guide < np.inf:
            raise InvalidInput(f"sizes are at most {_MAX_SIZE}, and the guide is finite", field="net")

    @property
    def is_believing(self) -> bool:
        """Whether a belief is kept."""
        return self.variant in ("belief", "dense")

    @property
    def has_parts(self) -> bool:
        """Whether rows hold three numbers per part, and not two per counter."""
        return self.variant != "rnn"

    @property
    def has_topology(self) -> bool:
        """Whether messages go over the topology."""
        return self.variant in ("belief", "counters")


@dataclass(frozen=True)
class A2c:
    """How to learn; the paper's Table 3 has rate 0.005, 20 steps and 2 environments, and no word on the rest.

    Attributes
    ----------
    num_envs, num_rollouts
        Episodes per iteration, and how many of them run the same stream.
    horizon_s
        Over how many seconds a decision is held to account.
    epochs, clip_ratio
        Updates per iteration, and how far from the policy that played they may lead.
    entropy
        Weight of the bonus for being undecided in the first iteration; it falls to a tenth over ``anneal`` iterations.
    clip
        Largest norm of a gradient.
    anneal
        Iterations over which the learning rate and the bonus fall to a tenth; None keeps them.
    """

    num_envs: int = 32
    num_rollouts: int = 4
    horizon_s: float = 10.0
    rate: float = 2e-3
    epochs: int = 3
    clip_ratio: float = 0.2
    entropy: float = 0.1
    value_weight: float = 0.25
    clip: float = 0.5
    reward: str = "flow"
    anneal: int | None = None

    def __post_init__(self) -> None:
        if self.reward not in REWARDS:
            raise UnknownName("reward", self.reward, REWARDS)
        if min(self.num_envs, self.num_rollouts, self.epochs) < 1 or not (self.rate > 0 and self.horizon_s > 0):
            raise InvalidInput("num_envs, num_rollouts, epochs, rate and horizon_s must be positive", field="a2c")
        if self.num_envs % self.num_rollouts:
            raise InvalidInput(
                f"{self.num_envs} environments cannot be shared out in groups of {self.num_rollouts}", field="a2c"
            )


@dataclass(frozen=True, eq=False)
class NetShape:
    """The graph side of a policy: neighbors, and positions in a row.

    Nodes of the topology are the R resources, then the P processors.
    """

    num_kernels: int
    num_procs: int
    num_resources: int
    num_counters: int
    fpgas: Ints  # [Q]
    source: Ints  # [E] messages go from here
    target: Ints  # [E] to here
    resource_kind: np.ndarray  # [R, 6] one-hot
    proc_kind: np.ndarray  # [P, 4] one-hot
    follows: np.ndarray  # [K, K] which kernels come right after each, rows sum to at most one

    def __eq__(self, other: object) -> bool:
        return isinstance(other, NetShape) and self._content == other._content

    def __hash__(self) -> int:
        return hash(self._content)

    @cached_property
    def _content(self) -> tuple[object, ...]:
        """All of it as something that can be compared, so that equal shapes share compiled code."""
        arrays = (self.fpgas, self.source, self.target, self.resource_kind, self.proc_kind, self.follows)
        sizes = (self.num_kernels, self.num_procs, self.num_resources, self.num_counters)
        return (*sizes, *(array.tobytes() for array in arrays))

    def row_length(self, settings: NetSettings) -> int:
        """Return the numbers in a row."""
        last = 3 * self.num_resources if settings.has_parts else 2 * self.num_counters
        pairs = self.num_kernels * self.num_procs * NUM_PAIR
        return pairs + self.num_procs * NUM_PROC + self.num_kernels * NUM_KERNEL + last

    @property
    def num_actions(self) -> int:
        return self.num_kernels * (self.num_procs + len(self.fpgas)) + 1


def shape_of(model: RackModel, num_counters: int, streams: Streams) -> NetShape:
    """Return the shape of a rack and its kernels; the streams say which kernel follows which."""
    arrays = model.arrays
    source, target = _edges(model)
    proc_kind = np.zeros((len(arrays.proc_kind), 4))
    proc_kind[np.arange(len(arrays.proc_kind)), arrays.proc_kind] = 1.0
    resource_kind = np.array([[float(kind == one) for one in _KINDS] for kind in model.resource_kind])
    follows = np.zeros((len(model.kernels), len(model.kernels)))
    for i in range(len(streams.kernel)):
        ptr = streams.after_ptr[i]
        before = np.repeat(np.arange(len(ptr) - 1), np.diff(ptr))
        np.add.at(follows, (streams.kernel[i, before], streams.kernel[i, streams.after[i, : len(before)]]), 1.0)
    follows = (follows > 0) / np.maximum((follows > 0).sum(axis=1, keepdims=True), 1.0)
    return NetShape(
        len(model.kernels),
        len(model.processors),
        len(model.resources),
        num_counters,
        arrays.fpgas,
        source,
        target,
        resource_kind,
        proc_kind,
        follows,
    )


def _edges(model: RackModel) -> tuple[Ints, Ints]:
    """Return both directions of every link: between parts, and past processors that are not commanded."""
    node = {name: place for place, name in enumerate((*model.resources, *model.processors))}
    pairs = set()
    for machine in model.rack.machines:
        for a, b in machine.links:
            x, y = (node.get(f"{machine.name}/{name}") for name in (a, b))
            if x is not None and y is not None:
                pairs |= {(x, y), (y, x)}
    for p, name in enumerate(model.processors):  # a NIC is a resource and may be a processor as well
        r = node.get(name)
        if r is not None and name in model.resources:
            place = model.resources.index(name)
            pairs |= {(place, len(model.resources) + p), (len(model.resources) + p, place)}
    listed = sorted(pairs)
    return np.array([x for x, _ in listed], np.int32), np.array([y for _, y in listed], np.int32)


def a2c_of(case: str) -> A2c:
    """Return how a case is learned: two NICs hold a decision to account for 3 s, racks for 20 s."""
    return A2c(horizon_s=3.0 if case == "two-nics" else 20.0, anneal=120)
