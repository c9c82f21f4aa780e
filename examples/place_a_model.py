"""Place a neural network's operations on devices, and compare heuristics with a search.

Run it with ``python examples/place_a_model.py``.
"""

from __future__ import annotations

import stretto

SEARCH_SECONDS = 3.0


def main() -> None:
    """Place one transformer on two fast and two slow GPUs, three ways."""
    model = stretto.workloads.generate("transformer")
    devices = "gpu:2x1.0,gpu:2x0.5@4GB/s"
    print(f"{model.name}: {model.num_tasks} operations on {devices}")

    limit = stretto.bound(model, devices)
    print(f"no placement is faster than {limit.value_s * 1e3:.3f} ms ({limit.method})")
    for policy in ("round-robin", "heft", "annealing"):
        result = stretto.plan(model, devices, policy=policy, time_limit_s=SEARCH_SECONDS)
        used = len(set(result.plan.assignment.tolist()))
        print(f"{policy:>12}: {result.makespan_s * 1e3:.3f} ms on {used} devices, gap {result.gap:.1%}")


if __name__ == "__main__":
    main()
