"""Which pool a job prefers, one row each; see ``queues.kernels.pools``."""

from __future__ import annotations

from stretto.queues.kernels import codes
from stretto.queues.rules import PoolRule

FIRST = PoolRule(codes.FIRST_FIT, "the first pool in which the job fits")
CHEAPEST = PoolRule(codes.CHEAPEST, "of the pools in which the job fits, the one where it costs least")
FASTEST = PoolRule(codes.FASTEST, "of the pools in which the job fits, the fastest")
BURST = PoolRule(codes.BURST, "pool 0; another where that saves the deadline, or more than it costs")
PACK = PoolRule(codes.PACK, "as burst; room on nodes that are up costs its part only, a new node what it idles, too")
