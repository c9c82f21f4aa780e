"""Pools of the machines in a price list that suit a workflow, and what is assumed about them."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np

from stretto.core.graph import TaskGraph
from stretto.core.pool import Pool, Spot
from stretto.errors import InvalidInput
from stretto.files.document import read_document
from stretto.files.prices import ec2, gcp, skypilot
from stretto.files.prices.catalogue import MAX_CATALOGUE_BYTES, read_catalogue
from stretto.files.prices.offer import Offer, pool_of

#: Assumed of every offer: nodes that can be had, and seconds until one is up.
NUM_NODES = 32
PROVISION_S = 90.0
#: Machines of different size that are considered, each at least twice as large as the one before.
_MOST_SIZES = 4


def is_price_list(path: str | Path) -> bool:
    """Say whether a file is a catalogue of offers."""
    if not os.path.isfile(path):
        return False
    document = read_document(path, max_bytes=MAX_CATALOGUE_BYTES)
    kinds = (skypilot.is_archive, skypilot.is_catalogue, ec2.is_ec2_list, gcp.is_price_list)
    return any(is_kind(document) for is_kind in kinds)


def offer_pools(path: str | Path, graph: TaskGraph) -> tuple[tuple[Pool, ...], tuple[str, ...]]:
    """Return pools of the cheapest machines of one region that hold every task, and what was assumed about them."""
    offers = read_catalogue(path)
    fitting = [offer for offer in offers if _holds(offer, graph)]
    if not fitting:
        raise InvalidInput("has no on-demand offer that can hold the largest task of the graph", source=str(path))
    cheapest = min(fitting, key=_rate)
    local = [offer for offer in fitting if (offer.provider, offer.region) == (cheapest.provider, cheapest.region)]
    chosen = _sizes(local, cheapest)
    place = f"{cheapest.provider} {cheapest.region}"
    notes = (
        f"Of {len(offers):,} offers, {len(chosen)} of {place} are considered, where a processor costs least; choose "
        "others with stretto prices pool.",
        f"Of each offer {NUM_NODES} nodes are assumed to be available, {PROVISION_S:g} s after the request, and as "
        "fast as the durations of the graph say.",
    )
    return tuple(_pool(offer) for offer in chosen), notes


def _holds(offer: Offer, graph: TaskGraph) -> bool:
    """Say whether a machine that is offered on demand holds each task; accelerators only where a task needs one."""
    gpus = _most(graph.gpus)
    return (
        offer.price_usd_per_hour is not None
        and offer.num_vcpus >= max(1.0, _most(graph.cores))
        and offer.memory_bytes >= _most(graph.memory_bytes)
        and (offer.num_accelerators >= gpus if gpus else offer.accelerator is None)
    )


def _most(needs: np.ndarray[tuple[int, ...], np.dtype[np.float64]] | None) -> float:
    return 0.0 if needs is None else float(needs.max(initial=0.0))


def _rate(offer: Offer) -> tuple[float, str, str, str]:
    """Return what a processor costs, and names, so that equal prices have an order."""
    assert offer.price_usd_per_hour is not None
    return offer.price_usd_per_hour / int(offer.num_vcpus), offer.provider, offer.instance_type, offer.place


def _sizes(local: list[Offer], cheapest: Offer) -> list[Offer]:
    """Return the cheapest machine of some sizes, the one with the cheapest processor first."""
    chosen = [cheapest]
    for size in sorted({int(offer.num_vcpus) for offer in local}):
        alike = [offer for offer in local if int(offer.num_vcpus) == size]
        distinct = all(size >= 2 * one.num_vcpus or 2 * size <= one.num_vcpus for one in chosen)
        if distinct and len(chosen) < _MOST_SIZES:
            chosen.append(min(alike, key=_rate))
    return chosen


def _pool(offer: Offer) -> Pool:
    spot = offer.spot_price_usd_per_hour
    market = Spot(np.zeros(1), np.array([spot]), np.zeros(1)) if spot is not None else None
    return pool_of(offer, NUM_NODES, market, name=offer.instance_type, min_nodes=0, provision_s=PROVISION_S)
