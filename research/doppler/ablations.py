"""Doppler's ablations by name: the paper's, and those that its reviewers asked for.

    python -m research.doppler.ablations joint workload:chainmm --cluster gpu:4 --episodes 640

``benchmarks/doppler.py ablations`` compares all of them.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from research.doppler.settings import AblationSettings
from research.doppler.trainers import trainer_for

from stretto.core.problem import Problem
from stretto.graphs.doppler.run import AnyStage, DopplerRun
from stretto.graphs.doppler.trainer import Learning
from stretto.learning.trainer import TrainingSpec

#: What each variant changes in the usual settings.
ABLATIONS: dict[str, dict[str, Any]] = {
    "both": {},
    "select": {"plc": "earliest"},
    "place": {"sel": "b-level"},
    "joint": {"policy": "joint", "window": 16},
    "per-step": {"encode_every": 4},
    "improver": {"policy": "improve", "encode_every": 4},
    "one-shot": {"sel": "b-level", "plc": "one-shot", "symmetric": False},
    "no-tables": {"tables": False},
    "paper-encoder": {"encoder": "paper", "hidden": 128, "rounds": 6, "head": 64},
    "paper-encoder-no-tables": {"encoder": "paper", "hidden": 128, "rounds": 6, "head": 64, "tables": False},
}


def settings_of(variant: str, **changes: Any) -> AblationSettings:
    """Return the settings of a variant, with further changes."""
    return AblationSettings(**{**ABLATIONS[variant], **changes})


class AblationRun(DopplerRun):
    """One training of an ablation on one problem, from fresh weights unless ``spec.start`` names others.

    The generalist was trained as two policies that encode the graph once: it would favour those.
    """

    def __init__(
        self,
        problem: Problem,
        spec: TrainingSpec,
        *,
        settings: AblationSettings,
        learning: Learning | None = None,
        stages: Sequence[AnyStage] | None = None,
    ) -> None:
        self.trainer_class = trainer_for(settings)
        super().__init__(
            problem, replace(spec, start=spec.start or "scratch"), settings=settings, learning=learning, stages=stages
        )


def main() -> None:
    """Train one ablation on one graph and print its progress."""
    import stretto

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("variant", choices=ABLATIONS)
    parser.add_argument("graph", help="a file, or workload:NAME?key=value")
    parser.add_argument("--cluster", default="gpu:4")
    parser.add_argument("--episodes", type=int, default=640)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    problem = stretto.problem(given.graph, given.cluster)
    spec = TrainingSpec(seed=given.seed, episodes=given.episodes)
    run = AblationRun(problem, spec, settings=settings_of(given.variant), learning=Learning(episodes=given.episodes))
    while not run.is_done:
        row = run.step()
        print(f"episode {row.episode}: mean {row.mean_s:.6g} s, best {row.best_s:.6g} s", flush=True)


if __name__ == "__main__":
    main()
