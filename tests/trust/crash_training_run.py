"""The training that ``test_crash_training`` kills: ``python crash_training_run.py FOLDER KIND NUM_KILLS SEED``."""

from __future__ import annotations

import hashlib
import json
import os
import random
import sys
from functools import partial
from pathlib import Path
from typing import Any

from kill_points import killed_at_random, start

from stretto.core.cluster import Cluster
from stretto.core.problem import Problem
from stretto.files import checkpoint
from stretto.learning import loop
from stretto.learning.loop import TrainingRun
from stretto.learning.trainer import Trainer, TrainingRow, TrainingSpec
from stretto.workloads import generate

#: Episodes of one training, and the bytes of news after which a kill comes at the latest.
_SIZES = {"pretend": (120, 40), "doppler": (72, 12)}


def make(kind: str, path: Path) -> TrainingRun[TrainingRow]:
    problem = Problem.of(generate("cholesky", num_tiles=4), Cluster.parse("cpu:2,gpu:1"))
    spec = TrainingSpec(seed=3, episodes=_SIZES[kind][0], num_threads=1)
    return TrainingRun(_trainer(kind, problem, spec), algorithm=kind, path=path)


def _trainer(kind: str, problem: Problem, spec: TrainingSpec) -> Trainer[TrainingRow]:
    if kind == "pretend":
        from learning.pretend_trainer import PretendTrainer

        return PretendTrainer(problem, spec)
    from stretto.graphs.doppler.run import DopplerRun
    from stretto.graphs.doppler.trainer import Learning

    return DopplerRun(problem, spec, learning=Learning(batch=8, episodes=spec.episodes or 0, elites=2))


def part(kind: str, path: Path) -> None:
    """Train to the end, from the checkpoint where there is one, with a checkpoint after every step."""
    loop.CHECKPOINT_EVERY_S = 0.0
    run = make(kind, path)
    if path.exists():
        run.resume()

    def note(row: TrainingRow) -> None:
        with path.with_suffix(".news").open("a") as news:
            news.write(f"{row.episode}\n")

    run.train(on_row=note)


def outcome(path: Path) -> dict[str, Any]:
    """Return what a finished training came to, without the times that it took."""
    arrays, meta = checkpoint.load(path)
    rows = arrays["run/rows"]
    rows[:, 1] = 0.0
    digests = {name: hashlib.sha256(array.tobytes()).hexdigest() for name, array in sorted(arrays.items())}
    return {"arrays": digests, "meta": meta, "episodes": rows[:, 0].tolist()}


def one_training(folder: Path, kind: str, rng: random.Random) -> dict[str, Any]:
    """Kill and resume until the training is through."""
    folder.mkdir()
    path, num_kills = folder / "state.npz", 0
    while killed_at_random(partial(part, kind, path), path.with_suffix(".news"), _SIZES[kind][1], rng):
        num_kills += 1
        if path.exists():
            checkpoint.load(path)  # at every moment the file is whole
    strays = [file.name for file in folder.iterdir() if file.suffix not in (".npz", ".news")]
    return {"num_kills": num_kills, "strays": len(strays), **outcome(path)}


def main(folder: Path, kind: str, num_kills: int, seed: int) -> None:
    rng = random.Random(seed)
    whole = start(partial(part, kind, folder / "whole.npz"))
    assert os.waitstatus_to_exitcode(os.waitpid(whole, 0)[1]) == 0
    trainings: list[dict[str, Any]] = []
    while sum(training["num_kills"] for training in trainings) < num_kills:
        trainings.append(one_training(folder / f"run-{len(trainings)}", kind, rng))
    print(json.dumps({"whole": outcome(folder / "whole.npz"), "trainings": trainings}))


if __name__ == "__main__":
    sys.path.append(str(Path(__file__).resolve().parents[1]))
    if sys.argv[2] == "doppler":
        import stretto.graphs.doppler.run  # noqa: F401  read once, before the forks; nothing is computed, so it has no threads yet
    main(Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))
