"""Train once for the picture of a training, and keep the curve: ``python docs/picture_training.py [EPISODES]``.

Doppler learns on ``examples/graph.json`` for 1,200 episodes unless told; annealing then tries as many plans. Counted in
plans and not in seconds, the picture is the same on a busy machine. The curve goes to ``docs/pictures/training.json``,
from which ``make_pictures.py`` draws.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import stretto

ROOT = Path(__file__).resolve().parent.parent
KEPT = ROOT / "docs" / "pictures" / "training.json"
CLUSTER = "gpu:4"


def main() -> None:
    """Train, let the opponents plan, and write what came of it."""
    episodes = int(sys.argv[1]) if len(sys.argv) > 1 else 1200
    graph = stretto.load(ROOT / "examples" / "graph.json")
    trained = stretto.train("doppler", graph, CLUSTER, episodes=episodes, seed=0)
    tried = {"max_evaluations": episodes}
    searched = stretto.plan(graph, CLUSTER, policy="annealing", params=tried, time_limit_s=600.0, num_threads=1)
    curve = {
        "graph": graph.name,
        "cluster": CLUSTER,
        "doppler": [[row.episode, row.seconds, row.best_s, row.mean_s] for row in trained.rows],
        "others": {"heft": trained.judged.others["heft"], f"annealing, {episodes:,} plans": searched.makespan_s},
    }
    KEPT.write_text(json.dumps(curve, default=float).replace("], ", "],\n ") + "\n")
    print(f"doppler {trained.judged.trained:.4f} s, {curve['others']}")


if __name__ == "__main__":
    main()
