"""Sources of training data: streams that are simulated in threads here, or on workers elsewhere. Both give the same."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import NamedTuple, Protocol

from stretto.learning.trainer import Farm
from stretto.racks.kernels.policy_score import NetWeights
from stretto.racks.symphony.cases import Case, World
from stretto.racks.symphony.loss import Lessons
from stretto.racks.symphony.player import StreamPlayer
from stretto.racks.symphony.settings import TrainingParams

#: The lessons of a stream, and its mean completion time.
Played = tuple[Lessons, float]


class Stream(NamedTuple):
    """A stream to learn from, and the seed of what happens in it."""

    instance: int
    seed: int


class LessonSource(Protocol):
    """Plays streams of a rack."""

    @property
    def num_instances(self) -> int:
        """How many streams there are to choose from."""
        ...

    def lessons(self, weights: NetWeights, streams: Sequence[Stream], params: TrainingParams) -> list[Played]:
        """Play streams by these weights; return what each teaches, in their order."""
        ...


class Threads:
    """Plays streams in threads of this process; kernels run side by side."""

    def __init__(self, world: World, num_threads: int = 1) -> None:
        self.num_instances = len(world.streams.kernel)
        self._players = [StreamPlayer(world) for _ in range(max(1, num_threads))]

    def lessons(self, weights: NetWeights, streams: Sequence[Stream], params: TrainingParams) -> list[Played]:
        """Play streams, every n-th in the same thread."""
        num = len(self._players)

        def play(thread: int) -> list[Played]:
            player = self._players[thread]
            return [player.lessons(weights, one.instance, seed=one.seed, p=params) for one in streams[thread::num]]

        if num == 1:
            return play(0)
        with ThreadPoolExecutor(num) as pool:
            parts = list(pool.map(play, range(num)))
        return [parts[k % num][k // num] for k in range(len(streams))]


@dataclass(frozen=True)
class RackStreams:
    """What a worker has to know once to play any stream of a training."""

    case: Case
    seed: int
    num_instances: int

    def player(self) -> StreamPlayer:
        """Return a player of these streams."""
        return StreamPlayer(self.case.world(seed=self.seed, num_instances=self.num_instances))


class Workers:
    """Plays streams on the workers of a farm."""

    def __init__(self, farm: Farm, case: Case, *, seed: int, num_instances: int) -> None:
        self.num_instances = num_instances
        self._farm = farm
        self._streams = RackStreams(replace(case), seed, num_instances)  # without the worlds that the case keeps here

    def lessons(self, weights: NetWeights, streams: Sequence[Stream], params: TrainingParams) -> list[Played]:
        """Play streams, each as a call of its own."""
        return self._farm.map(_play, self._streams, [(weights, one, params) for one in streams])


_KEPT = threading.local()


def _play(shared: RackStreams, item: tuple[NetWeights, Stream, TrainingParams]) -> Played:
    """Play a stream on a worker, each of whose threads keeps the player of the latest training."""
    if getattr(_KEPT, "streams", None) is not shared:
        _KEPT.streams, _KEPT.player = shared, shared.player()
    weights, stream, params = item
    player: StreamPlayer = _KEPT.player
    return player.lessons(weights, stream.instance, seed=stream.seed, p=params)
