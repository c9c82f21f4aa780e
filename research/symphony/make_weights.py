"""How the shipped weights of Symphony are made: expert iteration on preset and generated racks.

    python -m research.symphony.make_weights collect --seconds 300 --seed 11 --save lessons0.npz
    python -m research.symphony.make_weights fit lessons0.npz --save first.npz
    python -m research.symphony.make_weights collect --seconds 500 --seed 12 --start first.npz --save lessons1.npz
    python -m research.symphony.make_weights fit lessons0.npz lessons1.npz --start first.npz --save second.npz

*collect* plays training streams and prices the candidates of a share of the decisions; each round has other streams,
and two of three racks are generated. *fit* lowers the expected cost of the network's choices over all lessons, and
prints completion times over those of the start on validation racks: generated ones that no training sees and presets
with other streams, with the stand-in for the belief.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np

from stretto.core.csr import Floats
from stretto.racks.kernels.policy_score import NetWeights
from stretto.racks.symphony.cases import World, generated_world, rack_case
from stretto.racks.symphony.loss import Lessons
from stretto.racks.symphony.network import fresh_weights, load_weights, save_weights
from stretto.racks.symphony.settings import TRAINING
from stretto.racks.symphony.trainer import Descent, StreamPlayer

PRESETS = {"small-rack": 6, "m1": 4, "m2": 4, "hgx8": 4}
#: Generated racks of training have numbers below the first of these; validation has the second ones.
NUM_GENERATED, VALIDATION_NUMBERS = 3000, (5000, 5001, 5002, 5003, 5004, 5006)
MOST_PROCESSORS, NUM_STREAMS = 20, 8
_TRAIN_SEED, _VALIDATION_SEED = 20_000, 900


def training_worlds(seed: int) -> Iterator[World]:
    """Yield racks with new streams, without end: presets in turn, and two generated racks after each."""
    rng = np.random.default_rng(seed)
    turn = 0
    while True:
        name = list(PRESETS)[turn // 3 % len(PRESETS)]
        drawn = 1000 * seed + turn
        if turn % 3 == 0:
            yield rack_case(name, PRESETS[name]).world(seed=_TRAIN_SEED + drawn, num_instances=NUM_STREAMS)
        else:
            world = generated_world(int(rng.integers(NUM_GENERATED)), seed=drawn, num_instances=NUM_STREAMS)
            if len(world.model.processors) <= MOST_PROCESSORS:
                yield world
        turn += 1


class Validation:
    """Racks and streams that are not trained on, and what the start takes there."""

    def __init__(self, start: NetWeights, num_streams: int = 24) -> None:
        worlds = [
            rack_case(name, num).world(seed=_VALIDATION_SEED, num_instances=num_streams)
            for name, num in {**PRESETS, "small-rack": 10}.items()
        ]
        worlds += [generated_world(number, seed=3, num_instances=num_streams) for number in VALIDATION_NUMBERS]
        self.players = [StreamPlayer(world) for world in worlds]
        self._streams = range(num_streams)
        self._start_s = self._mean_s(start)

    def _mean_s(self, weights: NetWeights) -> Floats:
        return np.array([player.mean_s(weights, self._streams, seed=3) for player in self.players])

    def __call__(self, weights: NetWeights) -> Floats:
        """Return completion time over that of the start, by rack."""
        return self._mean_s(weights) / self._start_s


def collect(start: NetWeights, *, seconds: float, seed: int) -> Lessons:
    """Return lessons of so many seconds of processor time."""
    found: list[Lessons] = []
    begun = time.process_time()
    for turn, world in enumerate(training_worlds(seed)):
        player = StreamPlayer(world)
        for instance in range(NUM_STREAMS):
            found.append(player.lessons(start, instance, seed=seed * 1_000_000 + turn)[0])
        if time.process_time() - begun > seconds:
            break
    return Lessons.joined(found)


def fit(start: NetWeights, lessons: Lessons, *, num_updates: int, seed: int) -> NetWeights:
    """Return the running mean of the weights after so many updates."""
    params = replace(TRAINING, batch=256, sharpness=100.0, inertia=0.998)
    descent, rng = Descent(start, params), np.random.default_rng(seed)
    for _ in range(num_updates):
        descent.update(lessons.taken(rng.integers(len(lessons.cost), size=params.batch)))
    return descent.weights


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("collect", "fit"))
    parser.add_argument("lessons", type=Path, nargs="*")
    parser.add_argument("--seconds", type=float, default=300.0)
    parser.add_argument("--updates", type=int, default=3000)
    parser.add_argument("--start", type=Path)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--save", type=Path, required=True)
    options = parser.parse_args()
    start = load_weights(options.start)[0] if options.start else fresh_weights(options.seed)
    if options.what == "collect":
        np.savez(options.save, **collect(start, seconds=options.seconds, seed=options.seed)._asdict())
        return
    parts = [Lessons(**np.load(path)) for path in options.lessons]
    weights = fit(start, Lessons.joined(parts), num_updates=options.updates, seed=options.seed)
    found = Validation(start)(weights)
    print(f"{sum(len(part.cost) for part in parts):,} lessons, over the start {found.mean():.4f}", found.round(3))
    save_weights(options.save, weights, {"iterations": options.updates, "seed": options.seed})


if __name__ == "__main__":
    main()
