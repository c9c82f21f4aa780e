"""The nodes, partitions and scheduling of a site as lines of ``slurm.conf`` and ``gres.conf`` of a private Slurm."""

from __future__ import annotations

import math
from pathlib import Path

from stretto.core.site import MIB, Partition, Site, SiteNode

#: RealMemory of nodes that state none, in MiB.
_ANY_MEMORY_MB = 16000


def site_settings(site: Site, batch_sched_delay_s: int = 3, priority_period_min: int = 5) -> dict[str, object]:
    """Return the settings that follow from a site's policy, by name."""
    found: dict[str, object] = {"SelectTypeParameters": "CR_Core_Memory", "DefMemPerNode": 1}
    timing = site.policy.scheduler
    if timing is not None:
        words = {
            "bf_interval": round(timing.bf_interval_s),
            "bf_resolution": round(timing.bf_resolution_s),
            "bf_window": round(timing.bf_window_s / 60),
            "bf_max_job_test": timing.bf_max_job_test,
            "default_queue_depth": timing.queue_depth,
            "sched_interval": round(timing.sched_interval_s),
            "batch_sched_delay": batch_sched_delay_s,
        }
        options = [f"{name}={value}" for name, value in words.items()]
        found["SchedulerParameters"] = ",".join([*options, *(["bf_continue"] if timing.bf_continue else [])])
        found["SchedulerType"] = "sched/backfill" if timing.has_backfill else "sched/builtin"
    weights = site.policy.priority
    if weights is not None:
        found |= {
            "PriorityType": "priority/multifactor",
            "PriorityWeightAge": round(weights.age),
            "PriorityWeightJobSize": round(weights.job_size),
            "PriorityWeightPartition": round(weights.partition),
            "PriorityMaxAge": _minutes(weights.max_age_s),
            "PriorityFavorSmall": "YES" if weights.favors_small else "NO",
            "PriorityCalcPeriod": priority_period_min,
        }
    return found


def site_lines(site: Site, hostname: str, ports: tuple[int, ...]) -> list[str]:
    """Return the lines of nodes and partitions."""
    nodes = [_node(node, hostname, port) for node, port in zip(site.nodes, ports, strict=True)]
    return [*nodes, *(_partition(part, part is site.default_partition) for part in site.partitions)]


def site_gres(site: Site, folder: Path) -> list[str]:
    """Return the lines of ``gres.conf``: each type of GPUs has device files of its own."""
    found = []
    for node in site.nodes:
        first = 0
        for kind, count in node.gpus.items():
            if count:
                files = f"{folder}/dev/gpu[{first}-{first + count - 1}]"
                found.append(f"NodeName={node.name} Name=gpu Type={kind} File={files}")
                first += count
    return found


def _node(node: SiteNode, hostname: str, port: int) -> str:
    memory = _ANY_MEMORY_MB if math.isinf(node.memory_bytes) else int(node.memory_bytes // MIB)
    words = [
        f"NodeName={node.name} NodeHostname={hostname} NodeAddr=127.0.0.1 Port={port}",
        f"CPUs={node.cpus} Boards=1 SocketsPerBoard=1 CoresPerSocket={node.cpus} ThreadsPerCore=1",
        f"RealMemory={memory} Weight={node.weight} State=UNKNOWN",
    ]
    gpus = ",".join(f"gpu:{kind}:{count}" for kind, count in node.gpus.items() if count)
    words += [f"Gres={gpus}"] if gpus else []
    words += [f"Feature={','.join(sorted(node.features))}"] if node.features else []
    return " ".join(words)


def _partition(part: Partition, is_default: bool) -> str:
    words = [
        f"PartitionName={part.name} Nodes={','.join(part.nodes)} Default={'YES' if is_default else 'NO'} State=UP",
        f"PriorityTier={part.priority_tier} PriorityJobFactor={part.priority_job_factor}",
        f"MaxTime={_minutes(part.max_time_s)}",
    ]
    words += [] if part.default_time_s is None else [f"DefaultTime={_minutes(part.default_time_s)}"]
    words += [] if part.max_nodes is None else [f"MaxNodes={part.max_nodes}"]
    words += ["OverSubscribe=EXCLUSIVE"] if part.is_exclusive else []
    return " ".join(words)


def _minutes(seconds: float) -> str:
    """Return a time as Slurm writes it: whole minutes, rounded up."""
    return "INFINITE" if math.isinf(seconds) else str(math.ceil(seconds / 60))
