"""The limits of the code are those of the tables in the documents, and what has a default has the documented one."""

from __future__ import annotations

import re
from dataclasses import MISSING, fields
from datetime import UTC, datetime
from math import inf
from pathlib import Path
from typing import Any

import pytest

from stretto.core import argument_checks, graph, machine, magnitudes, pool, site, site_policy, topology
from stretto.core.cluster import DEFAULT_BANDWIDTH, MAX_DEVICES, Cluster, Device, KindRule
from stretto.core.machine import Part
from stretto.core.magnitudes import Range
from stretto.core.nodes.packing import DEFAULT_CORES
from stretto.core.plan import DISCIPLINES, Plan
from stretto.core.planner import Budget
from stretto.core.pool import Pool, Spot
from stretto.core.request import ResourceRequest
from stretto.core.results.paired import Bootstrap
from stretto.core.site import Partition, Reservation, Site, SiteNode
from stretto.core.site_policy import Account, PriorityFactors, Qos, SchedulerTiming, SitePolicy
from stretto.core.topology import Wire
from stretto.core.trace import UNKNOWN, Trace
from stretto.core.workload import Job

SEMANTICS = Path(__file__).parents[2] / "docs" / "semantics.md"
_NUMBER = r"[0-9][0-9,]*(?:e-?[0-9]+)?"


def row(quantity: str) -> str:
    """Return what the table of supported magnitudes says of a quantity."""
    text = SEMANTICS.read_text(encoding="utf-8").partition("## Supported magnitudes")[2].partition("\n## ")[0]
    (found,) = [line.split("|")[2].strip() for line in text.splitlines() if line.startswith(f"| {quantity}")]
    return found


def numbers(text: str) -> list[float]:
    return [float(number.replace(",", "")) for number in re.findall(_NUMBER, text)]


@pytest.mark.parametrize(
    ("quantity", "supported"),
    [
        ("times as given", magnitudes.SECONDS),
        ("a duration divided by", magnitudes.DERIVED_SECONDS),
        ("sizes of objects", magnitudes.BYTES),
        ("sizes of objects", magnitudes.CAPACITY_BYTES),
        ("bandwidth", magnitudes.BYTES_PER_S),
        ("speeds, and factors", magnitudes.SPEED),
        ("cores", magnitudes.CORES),
        ("cores", magnitudes.CAPACITY_CORES),
        ("prices and bids", magnitudes.USD_PER_HOUR),
        ("interruptions of spot nodes", pool._PER_HOUR),
        ("`stretto run --scale`", magnitudes.SCALE),
    ],
)
def test_ranges_are_those_of_the_table(quantity: str, supported: Range) -> None:
    said = row(quantity)
    assert [supported.least, supported.most] == numbers(said.removeprefix("0, or "))[:2]
    assert supported.has_zero == said.startswith("0, or ")


def test_infinity_is_supported_where_it_says_that_there_is_no_limit() -> None:
    named = {name: found for name, found in vars(magnitudes).items() if isinstance(found, Range)}
    assert {name for name, found in named.items() if found.has_infinity} == {
        "CAPACITY_BYTES", "BYTES_PER_S", "CAPACITY_CORES",
    }  # fmt: skip
    assert {name for name, found in named.items() if not found.has_zero} == {"BYTES_PER_S", "SPEED"}
    units = {name: found.unit for name, found in named.items()}
    assert units == {
        "SECONDS": "s", "DERIVED_SECONDS": "s", "TOTAL_SECONDS": "s", "BYTES": "bytes", "CAPACITY_BYTES": "bytes",
        "BYTES_PER_S": "bytes/s", "TRAFFIC": "bytes/s", "SPEED": "", "CORES": "", "CAPACITY_CORES": "",
        "USD_PER_HOUR": "USD/h", "NOISE": "", "SCALE": "",
    }  # fmt: skip
    # What a kernel moves may be zero, but is otherwise as a bandwidth.
    traffic, rate = magnitudes.TRAFFIC, magnitudes.BYTES_PER_S
    assert (traffic.least, traffic.most) == (rate.least, rate.most)


def test_sums_and_counts_are_those_of_the_table() -> None:
    total = magnitudes.TOTAL_SECONDS
    assert (total.least, [total.most]) == (0.0, numbers(row("the last arrival"))[:1])
    noise = magnitudes.NOISE
    assert [noise.least, noise.most] == numbers(row("noise"))
    assert numbers(row("nodes of a pool")) == [pool.MAX_NODES, pool.MAX_PROCS]
    routed = [MAX_DEVICES, topology.MAX_ROUTED_DEVICES, topology.MAX_WIRES, topology.MAX_HOPS]
    assert routed == numbers(row("devices of a cluster"))
    assert numbers(row("tasks of `workload")) == [argument_checks.MAX_TASKS, argument_checks.MAX_JOBS]
    # Counts of nodes, tasks and processors per job are 32-bit numbers, as those of pools.
    assert site.MAX_COUNT == pool.MAX_PROCS == 2**31 - 1


def test_limits_that_no_document_states() -> None:
    """Each of them keeps a slip of the keyboard from filling the memory."""
    assert (argument_checks.MAX_EDGES, argument_checks.MAX_COUNT) == (50_000_000, 1_000_000_000)
    assert graph.MAX_TABLE * 8 == 160e6  # bytes of a table of durations
    assert machine.MAX_PARTS == MAX_DEVICES
    assert datetime(9999, 12, 31, 23, 59, 59, tzinfo=UTC).timestamp() + 1 == site.END_OF_DATES
    assert (UNKNOWN, DEFAULT_BANDWIDTH, DEFAULT_CORES, site.MIB) == (-1, 1e9, 1.0, 1024 * 1024)


#: What users get where they state nothing. A change of one of these changes the results of everybody.
_DEFAULTS: dict[type, dict[str, Any]] = {
    Device: {
        "kind": "cpu", "speed": 1.0, "memory_bytes": inf, "cores": inf, "machine": "m0", "price_usd_per_hour": 0.0,
        "gpus": inf, "packs": False, "resources": (),
    },
    KindRule: {"like": None, "only": (), "never": (), "factor": {}},
    Cluster: {"name": "cluster", "links": None, "rules": {}},
    Part: {"capacity": inf, "model": ""},
    Wire: {"latency_s": 0.0, "duplex": True},
    Plan: {"discipline": "sequence", "info": {}},
    Budget: {"seed": 0, "time_limit_s": None, "num_threads": 2, "on_progress": None},
    Bootstrap: {"confidence": 0.95, "num_resamples": 10_000, "seed": 0},
    Job: {"arrival_s": 0.0},
    Pool: {
        "procs_per_node": 1, "gpus_per_node": 0, "memory_bytes_per_node": inf, "speed": 1.0, "price_usd_per_hour": 0.0,
        "billing_s": 1.0, "provision_s": 0.0, "min_nodes": None, "idle_shutdown_s": inf, "spot": None,
        "minimum_s": None, "promised": False,
    },
    Spot: {"bid_usd_per_hour": inf, "checkpoint_s": inf},
    ResourceRequest: {
        "partitions": (), "num_tasks": 1, "cpus_per_task": 1, "min_nodes": 1, "max_nodes": None,
        "tasks_per_node": None, "memory_bytes_per_cpu": 0.0, "memory_bytes_per_node": 0.0, "gpus_per_task": {},
        "gpus_per_node": {}, "features": frozenset(), "is_exclusive": False,
    },
    SiteNode: {
        "memory_bytes": inf, "gpus": {}, "features": frozenset(), "weight": 1, "power_w": None, "idle_power_w": None,
        "price_usd_per_hour": 0.0,
    },
    Partition: {
        "priority_tier": 1, "priority_job_factor": 1, "max_time_s": inf, "default_time_s": None, "max_nodes": None,
        "is_default": False, "is_exclusive": False,
    },
    Reservation: {"is_dated": False},
    Site: {"reservations": (), "policy": SitePolicy(), "notes": ()},
    SitePolicy: {"priority": None, "scheduler": None, "qos": (), "accounts": ()},
    PriorityFactors: {
        "age": 0.0, "fair_share": 0.0, "job_size": 0.0, "partition": 0.0, "qos": 0.0, "max_age_s": 7 * 86400.0,
        "half_life_s": 7 * 86400.0, "favors_small": False,
    },
    Qos: {"priority": 0, "max_time_s": inf, **dict.fromkeys(site_policy.QOS_LIMITS)},
    Account: {"parent": None, "shares": 1, "user": None},
    SchedulerTiming: {
        "has_backfill": True, "bf_interval_s": 30.0, "bf_window_s": 86400.0, "bf_resolution_s": 60.0,
        "bf_max_job_test": 500, "bf_continue": False, "queue_depth": 100, "sched_interval_s": 60.0,
    },
}  # fmt: skip


@pytest.mark.parametrize("kind", _DEFAULTS, ids=lambda kind: kind.__name__)
def test_what_is_not_stated_has_its_default(kind: type) -> None:
    found = {field.name: field.default for field in fields(kind) if field.default is not MISSING}
    made = {field.name: field.default_factory() for field in fields(kind) if field.default_factory is not MISSING}
    assert found | made == _DEFAULTS[kind]


def test_a_limit_of_a_qos_has_one_name_per_thing_and_scope() -> None:
    scopes = {f"max_{what}{scope}" for what in ("jobs", "cpus", "gpus") for scope in ("", "_per_user", "_per_account")}
    others = {"max_cpus_per_job", "max_gpus_per_job", "max_submitted", "max_submitted_per_user"}
    assert set(site_policy.QOS_LIMITS) == scopes | others
    assert len(site_policy.QOS_LIMITS) == 13
    assert DISCIPLINES == ("sequence", "work-conserving")


def test_a_trace_of_columns_alone_says_nothing_else() -> None:
    bare = Trace.of([0.0], [1.0], [1])
    given = {"name", "submit_s", "run_s", "num_procs", "estimate_s"}
    others = {name: value for name, value in vars(bare).items() if name not in given}
    assert others == dict.fromkeys(others) | {"requests": (), "group_limits": (), "meta": {}}
