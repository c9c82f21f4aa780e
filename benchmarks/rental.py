"""Plans of recorded workflows on owned and rented nodes: never behind HEFT on the owned ones, and what they cost.

    python benchmarks/rental.py                     # every fourth file of STRETTO_DATA/wfformat
    python benchmarks/rental.py --every 1 --share 0.4

Two owned nodes; up to 32 of the same size can be rented for 0.40 USD/h, up after 90 s and 1.2 times as fast, or for
0.13 USD/h on spot. The deadline is a share of the time that HEFT takes on the owned nodes. Printed for each workflow:
the expected cost of the placement by cost over that of HEFT on the best number of rented nodes, where both are in time.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from pathlib import Path

import numpy as np
from peer_venv import HERE

from stretto.core.graph import TaskGraph
from stretto.core.pool import Pool, Spot
from stretto.files.load import load
from stretto.graphs.rental.goal import RentalGoal
from stretto.graphs.rental.search import DEFAULT_POLICY, PLACEMENT, rent


def pools_for(graph: TaskGraph) -> list[Pool]:
    """Return the pools, with nodes of at least four cores that hold the widest task."""
    procs = int(max(4.0, 0.0 if graph.cores is None else graph.cores.max()))
    market = Spot(np.zeros(1), np.array([0.13]), np.array([0.05]), checkpoint_s=600.0)
    own = Pool("own", 2, procs_per_node=procs)
    rented = {"speed": 1.2, "price_usd_per_hour": 0.4, "provision_s": 90.0}
    return [own, Pool("cloud", 32, procs_per_node=procs, min_nodes=0, spot=market, **rented)]


def judge(path: Path, share: float) -> tuple[bool, bool, float | None]:
    """Return whether the plan is behind HEFT on the owned nodes, whether it is in time, and the ratio of costs."""
    graph = load(path)
    assert isinstance(graph, TaskGraph)
    pools = pools_for(graph)
    alone = next(one for one in rent(graph, pools[:1], RentalGoal("time")) if one.policy == DEFAULT_POLICY)
    goal = RentalGoal("cost", share * alone.makespan_s)
    found = rent(graph, pools, goal)
    timely = [one for one in found if goal.late_s(one.latest_s) == 0]
    costs = {
        policy: [one.expected_usd for one in timely if one.policy == policy] for policy in (DEFAULT_POLICY, PLACEMENT)
    }
    both = all(costs.values())
    ratio = min(costs[PLACEMENT]) / min(costs[DEFAULT_POLICY]) if both and min(costs[DEFAULT_POLICY]) > 0 else None
    return found[0].key(goal) > alone.key(goal), bool(timely), ratio


def main() -> None:
    """Read the command line and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--every", type=int, default=4)
    parser.add_argument("--share", type=float, default=0.6)
    chosen = parser.parse_args()
    data = Path(os.environ.get("STRETTO_DATA", Path(HERE).resolve().parents[1] / "shared" / "data"), "wfformat")
    ratios, num_behind, num_timely, paths = [], 0, 0, sorted(data.glob("*.json*"))[:: chosen.every]
    if not paths:
        sys.exit(f"no workflow in {data}; set STRETTO_DATA")
    begin = time.process_time()
    for path in paths:
        is_behind, is_timely, ratio = judge(path, chosen.share)
        num_behind, num_timely = num_behind + is_behind, num_timely + is_timely
        ratios += [] if ratio is None else [ratio]
        print(f"{path.name[:60]:60} {'in time' if is_timely else 'late':8} {'-' if ratio is None else f'{ratio:.2f}'}")
    print(f"{len(paths)} workflows, {num_behind} behind HEFT on the owned nodes, {num_timely} in time", end="; ")
    spread = ", ".join(f"{value:.2f}" for value in np.percentile(ratios, [0, 25, 50, 75, 100]))
    print(f"cost over that of HEFT with rented nodes: {spread} (least, quartiles, most of {len(ratios)})")
    print(f"{time.process_time() - begin:.0f} s of CPU time")


if __name__ == "__main__":
    main()
