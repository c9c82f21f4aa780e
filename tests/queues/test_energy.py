"""Energy and carbon of small schedules, worked out by hand, and properties of all."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stretto.core.pool import Pool
from stretto.core.request import ResourceRequest
from stretto.core.site import Partition, Reservation, Site, SiteNode
from stretto.core.trace import Trace
from stretto.errors import InvalidInput
from stretto.files.prices.carbon import CarbonSeries
from stretto.queues.energy import NodePower, energy_of
from stretto.queues.replay import replay
from stretto.queues.result import QueueResult

HOUR = 3600.0
POWER = NodePower(100.0, 20.0)


def flat(run_h: list[float], procs: list[int], machine: int = 4, **more: object) -> QueueResult:
    trace = Trace.of([0.0] * len(run_h), [hours * HOUR for hours in run_h], procs)
    return replay(replace(trace, **more), machine)  # type: ignore[arg-type]


def test_two_jobs_by_hand() -> None:
    # 2 processors for 2 h and 1 for 1 h; 4 processors idle at 20 W for 2 h.
    found = energy_of(flat([2, 1], [2, 1]), POWER)
    assert found.idle_kwh == pytest.approx(4 * 20 * 2 / 1000)
    assert found.busy_kwh == pytest.approx((2 * 2 + 1) * 80 / 1000)
    assert found.kwh == found.figures()["energy_kwh"]
    assert found.carbon_kg is None


def test_carbon_goes_by_the_hour() -> None:
    # The first job ends after 1 h, the second after 2 h; the clean hour is the second.
    series = CarbonSeries(7 * HOUR, np.array([500.0, 100.0]), "g", "made up")
    found = energy_of(flat([1, 2], [2, 1], origin_unix_s=7 * HOUR), POWER, carbon=series)
    first, second = 4 * 20 + 3 * 80, 4 * 20 + 1 * 80
    assert found.carbon_kg == pytest.approx((first * 500 + second * 100) / 1e6)


def test_a_replay_that_begins_within_an_hour_is_split_there() -> None:
    series = CarbonSeries(0.0, np.array([100.0, 0.0]), "g", "made up")
    found = energy_of(flat([1], [4]), POWER, carbon=series, start_unix_s=1800.0)
    assert found.carbon_kg == pytest.approx(0.5 * 400 * 100 / 1e6)


def test_idle_time_beyond_the_last_job_counts_where_asked() -> None:
    result = flat([1], [4])
    more = energy_of(result, POWER, until_s=3 * HOUR).kwh - energy_of(result, POWER).kwh
    assert more == pytest.approx(4 * 20 * 2 / 1000)
    with pytest.raises(InvalidInput, match="before the end of the last job"):
        energy_of(result, POWER, until_s=1.0)


@settings(max_examples=50, deadline=None)
@given(
    st.lists(st.tuples(st.integers(1, 50), st.integers(1, 4)), min_size=1, max_size=12),
    st.floats(0, 500),
    st.floats(0, 500),
    st.integers(0, 5000),
)
def test_bounds_and_constant_intensity(jobs: list[tuple[int, int]], idle: float, more: float, begin: int) -> None:
    result = flat([run / 10 for run, _ in jobs], [procs for _, procs in jobs])
    power = NodePower(idle + more, idle)
    hours = result.makespan_s / HOUR
    series = CarbonSeries(0.0, np.full(int(hours) + 4, 250.0), "g", "made up")
    found = energy_of(result, power, carbon=series, start_unix_s=float(begin))
    assert 4 * idle * hours / 1000 - 1e-9 <= found.kwh <= 4 * (idle + more) * hours / 1000 + 1e-9
    assert found.carbon_kg == pytest.approx(found.kwh * 0.25)
    work = float(np.sum(result.trace.num_procs * result.trace.run_s)) / HOUR
    assert found.busy_kwh == pytest.approx(work * more / 1000)
    higher = energy_of(result, NodePower(idle + more + 1, idle + 1))
    assert higher.kwh > found.kwh


SITE = Site(
    "lab",
    (
        SiteNode("a", 4, power_w=200.0, idle_power_w=100.0),
        SiteNode("b", 8, power_w=400.0, idle_power_w=50.0),
    ),
    (Partition("all", ("a", "b")),),
)


def on_site(site: Site, *asked: ResourceRequest | tuple[ResourceRequest, ...]) -> QueueResult:
    n = len(asked)
    kinds = np.arange(n, dtype=np.int32)
    return replay(Trace.of([0.0] * n, [HOUR] * n, [1] * n, request=kinds, requests=asked), site)


def test_nodes_by_hand() -> None:
    result = on_site(SITE, ResourceRequest(num_tasks=2, cpus_per_task=2, max_nodes=1))
    assert result.nodes_of(0) == ["a"]
    found = energy_of(result)
    assert (found.idle_kwh, found.busy_kwh) == (pytest.approx(0.150), pytest.approx(0.100))
    half = on_site(SITE, ResourceRequest(num_tasks=1, cpus_per_task=2))
    assert energy_of(half).busy_kwh == pytest.approx(0.050)


def test_exclusive_jobs_and_components_have_their_own_share() -> None:
    alone = on_site(SITE, ResourceRequest(is_exclusive=True))
    assert energy_of(alone).busy_kwh == pytest.approx(0.100)
    both = on_site(SITE, (ResourceRequest(cpus_per_task=4), ResourceRequest(num_tasks=2, cpus_per_task=2, max_nodes=1)))
    assert sorted(both.nodes_of(0)) == ["a", "b"]
    assert energy_of(both).busy_kwh == pytest.approx(0.100 + 0.350 / 2)


def test_closed_nodes_draw_nothing() -> None:
    closed = replace(SITE, reservations=(Reservation("cooling", 0.0, 1800.0, ("b",)),))
    result = on_site(closed, ResourceRequest(num_tasks=4, max_nodes=1))
    assert energy_of(result).idle_kwh == pytest.approx(0.100 + 0.025)


def test_what_is_not_known_is_said() -> None:
    dark = replace(SITE, nodes=(SITE.nodes[0], SiteNode("b", 8)))
    result = on_site(dark, ResourceRequest())
    assert energy_of(result).notes == ("not counted: 1 of 2 nodes state no power_w",)
    assert energy_of(result, NodePower(50.0, 10.0)).idle_kwh == pytest.approx(0.110)
    half = replace(SITE, nodes=(SiteNode("a", 4, power_w=200.0), SITE.nodes[1]))
    (note,) = energy_of(on_site(half, ResourceRequest())).notes
    assert "1 of 2 nodes state no idle_power_w: counted as 0 W" in note
    none = replace(SITE, nodes=tuple(SiteNode(node.name, node.cpus) for node in SITE.nodes))
    with pytest.raises(InvalidInput, match="no node of site 'lab' states its power_w"):
        energy_of(on_site(none, ResourceRequest()))
    with pytest.raises(InvalidInput, match="power of the machine is unknown"):
        energy_of(flat([1], [1]))


def test_elastic_pools_count_the_nodes_that_were_up() -> None:
    trace = Trace.of([0.0], [HOUR], [2])
    found = replay(trace, (Pool("cloud", 8, min_nodes=0, idle_shutdown_s=0.0),))
    energy = energy_of(found, POWER)
    assert energy.idle_kwh == pytest.approx(2 * 20 / 1000)
    assert "assumed: the 2.0 nodes of pool 'cloud'" in energy.notes[0]


@pytest.mark.parametrize(("power", "idle"), [(-1.0, 0.0), (10.0, 20.0), (float("nan"), 0.0), (1e12, 0.0)])
def test_impossible_power_is_refused(power: float, idle: float) -> None:
    with pytest.raises(InvalidInput, match="idle power"):
        NodePower(power, idle)


def test_a_series_must_cover_the_replay() -> None:
    result = flat([3], [1])
    series = CarbonSeries(0.0, np.array([1.0, np.nan, 1.0]), "g", "hours.csv")
    with pytest.raises(InvalidInput, match="does not say when it began"):
        energy_of(result, POWER, carbon=series)
    with pytest.raises(InvalidInput, match=r"lacks 1 of the 3 hours.*1970-01-01 01:00"):
        energy_of(result, POWER, carbon=series, start_unix_s=0.0)
    with pytest.raises(InvalidInput, match="covers 1970-01-01 00:00 UTC to 1970-01-01 03:00 UTC"):
        energy_of(result, POWER, carbon=series, start_unix_s=1.0)
