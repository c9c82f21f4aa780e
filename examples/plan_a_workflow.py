"""Plan a scientific workflow on a small cluster with prices, and see what noise does to the plan.

Run it with ``python examples/plan_a_workflow.py``.
"""

from __future__ import annotations

import stretto


def main() -> None:
    """Plan, save nothing, print what matters."""
    workflow = stretto.workloads.generate("montage")
    cluster = stretto.Cluster.uniform(
        [
            *(stretto.Device(f"own{i}", "cpu", speed=1.0) for i in range(4)),
            *(stretto.Device(f"cloud{i}", "cpu", speed=2.0, price_usd_per_hour=0.4) for i in range(2)),
        ],
        bandwidth=125e6,
        latency_s=1e-3,
        name="4 own machines and 2 in the cloud",
    )

    result = stretto.plan(workflow, cluster, policy="heft")
    print(f"{workflow.name}: {workflow.num_tasks} tasks on {cluster.name}")
    print(f"makespan {result.makespan_s:.1f} s, at most {result.gap:.1%} above the optimum, ${result.cost_usd:.4f}")

    undisturbed = stretto.simulate(result)
    slow = [stretto.simulate(result, noise=0.3, seed=seed).makespan_s / undisturbed.makespan_s for seed in range(20)]
    print(f"run times off by 30%: {sum(slow) / len(slow) - 1:+.1%} on average, {max(slow) - 1:+.1%} at worst")


if __name__ == "__main__":
    main()
