"""How the shipped weights of Symphony are made: a round of expert iteration on preset and generated racks.

    python -m research.symphony.make_weights --save FILE     # the shipped file once more
    python -m research.symphony.make_weights --check         # makes it and says whether it is the same

Training streams are played by the first weights and the candidates of a share of the decisions are priced; two of three
racks are generated. Then the expected cost of the network's choices is lowered over all lessons. ``--judge`` plays
validation racks, generated ones that no training sees and presets with other streams, with the stand-in for the belief.

``first_round.npz`` holds the weights of two earlier rounds (36,624 lessons, 800 s of processor time). These rounds
were bounded by seconds, so that no command makes them again.
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
from stretto.racks.symphony.network import SHIPPED, flat, fresh_weights, load_weights, save_weights
from stretto.racks.symphony.player import StreamPlayer
from stretto.racks.symphony.settings import TRAINING
from stretto.racks.symphony.trainer import Descent

FIRST = Path(__file__).with_name("first_round.npz")
PRESETS = {"m1": 4, "m2": 4, "small-rack": 4, "hgx8": 4}
#: Generated racks of training have numbers below the first of these; validation has the second ones.
NUM_GENERATED, VALIDATION_NUMBERS = 3000, (5000, 5001, 5002, 5003, 5004, 5006)
MOST_PROCESSORS, NUM_STREAMS = 14, 8
_TRAIN_SEED, _VALIDATION_SEED = 20_000, 900
LESSONS = replace(TRAINING, most_lessons=48)
FIT = replace(TRAINING, batch=256, sharpness=100.0, rate=3e-4)


def training_worlds(seed: int) -> Iterator[tuple[int, World]]:
    """Yield racks with new streams, without end: presets in turn, and two generated racks after each."""
    rng = np.random.default_rng(seed)
    turn = 0
    while True:
        name = list(PRESETS)[turn // 3 % len(PRESETS)]
        drawn = 1000 * seed + turn
        if turn % 3 == 0:
            world = rack_case(name, PRESETS[name]).world(seed=_TRAIN_SEED + drawn, num_instances=NUM_STREAMS)
        else:
            world = generated_world(int(rng.integers(NUM_GENERATED)), seed=drawn, num_instances=NUM_STREAMS)
        turn += 1
        if len(world.model.processors) <= MOST_PROCESSORS:
            yield turn, world


def collect(start: NetWeights, *, num_racks: int, seed: int) -> Lessons:
    """Return the lessons of so many racks."""
    found: list[Lessons] = []
    for _, (turn, world) in zip(range(num_racks), training_worlds(seed), strict=False):
        player = StreamPlayer(world)
        for instance in range(NUM_STREAMS):
            found.append(player.lessons(start, instance, seed=seed * 1_000_000 + turn, p=LESSONS)[0])
    return Lessons.joined(found)


def fit(start: NetWeights, lessons: Lessons, *, num_updates: int, seed: int) -> NetWeights:
    """Return the running mean of the weights after so many updates."""
    descent, rng = Descent(start, FIT), np.random.default_rng(seed)
    for _ in range(num_updates):
        descent.update(lessons.taken(rng.integers(len(lessons.cost), size=FIT.batch)))
    return descent.weights


def judge(weights: NetWeights, start: NetWeights, num_streams: int = 48) -> Floats:
    """Return mean completion time over that of the start, by validation rack."""
    worlds = [
        rack_case(name, 4).world(seed=_VALIDATION_SEED, num_instances=num_streams)
        for name in ("m1", "m2", "hgx8", "small-rack")
    ]
    worlds += [generated_world(number, seed=27, num_instances=num_streams) for number in VALIDATION_NUMBERS]
    players = [StreamPlayer(world) for world in worlds]
    streams = range(num_streams)
    return np.array([one.mean_s(weights, streams, seed=0) / one.mean_s(start, streams, seed=0) for one in players])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--start", type=Path, default=FIRST)
    parser.add_argument("--racks", type=int, default=39)
    parser.add_argument("--updates", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=31, help="of the racks and streams of lessons")
    parser.add_argument("--save", type=Path)
    parser.add_argument("--check", action="store_true", help="compare with the shipped file")
    parser.add_argument("--judge", action="store_true", help="play validation racks")
    options = parser.parse_args()
    begun = time.process_time()
    start = load_weights(options.start)[0]
    lessons = collect(start, num_racks=options.racks, seed=options.seed)
    weights = fit(start, lessons, num_updates=options.updates, seed=0)
    print(f"{len(lessons.cost):,} lessons, {time.process_time() - begun:.0f} s of processor time", flush=True)
    if options.save is not None:
        meta = {"iterations": options.updates, "seed": options.seed, "lessons": len(lessons.cost)}
        save_weights(options.save, weights, meta)
    if options.check:
        shipped = load_weights(SHIPPED)[0]
        gap = float(np.abs(np.float32(flat(weights)) - flat(shipped)).max())
        print(f"largest difference to the shipped weights: {gap:.3g}")
    if options.judge:
        print("over the first weights:", judge(weights, start).round(4))
        print("over the untrained start:", judge(weights, fresh_weights(0)).round(4))


if __name__ == "__main__":
    main()
