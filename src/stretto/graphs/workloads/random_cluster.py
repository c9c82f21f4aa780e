"""Random clusters of related devices with unequal links."""

from __future__ import annotations

import numpy as np

from stretto.core import argument_checks as checks
from stretto.core.cluster import DEFAULT_BANDWIDTH, MAX_DEVICES, Cluster
from stretto.errors import InvalidInput


def random_cluster(
    num_devices: int,
    *,
    seed: int = 0,
    speed_spread: float = 8.0,
    link_spread: float = 4.0,
    bandwidth: float = DEFAULT_BANDWIDTH,
    latency_s: float = 0.0,
    kind: str = "cpu",
) -> Cluster:
    """Make devices whose speeds and links differ by the given factors.

    Speeds are log-uniform with geometric mean 1, links symmetric and log-uniform around
    ``bandwidth``.

    Parameters
    ----------
    speed_spread, link_spread
        The fastest over the slowest that can occur; 1 makes them equal.
    """
    checks.at_least(1, num_devices=num_devices)
    if num_devices > MAX_DEVICES:
        raise InvalidInput(f"{num_devices} devices; at most {MAX_DEVICES:,}", field="num_devices")
    checks.positive(bandwidth=bandwidth, speed_spread=speed_spread, link_spread=link_spread)
    for name, spread in (("speed_spread", speed_spread), ("link_spread", link_spread)):
        if spread < 1:
            raise InvalidInput(f"{spread} must be at least 1", field=name)
    random = np.random.default_rng(seed)
    speeds = speed_spread ** random.uniform(-0.5, 0.5, num_devices)
    upper = np.triu(link_spread ** random.uniform(-0.5, 0.5, (num_devices, num_devices)), 1)
    links = bandwidth * (upper + upper.T + np.eye(num_devices))
    return Cluster.related(speeds.tolist(), bandwidth=links, latency_s=latency_s, kind=kind)
