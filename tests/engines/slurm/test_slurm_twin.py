"""The model of Slurm starts the same jobs in the same order, at the same time, as Slurm's daemons do."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[3]))

from research.slurm_mixes import gpus
from research.slurm_twin import agreement, as_taken, host_list, options_of, ranks, run_daemons

from stretto.core.request import ResourceRequest
from stretto.core.site import MIB, Partition, Site, SiteNode
from stretto.core.site_policy import PriorityFactors, SchedulerTiming, SitePolicy
from stretto.engines.slurm.testbed.conf import Place, TestbedSpec, gres_conf, slurm_conf
from stretto.engines.slurm.testbed.site_conf import site_settings
from stretto.queues.nodes.slurm_model.replay import replay_like_slurm
from stretto.queues.nodes.validate import check_nodes

NUM_JOBS = 40


def test_starts_as_the_daemons_start(slurm_place: Path) -> None:
    mix = gpus(NUM_JOBS, seed=3)
    site = replace(mix.site, policy=replace(mix.site.policy, scheduler=SchedulerTiming(bf_interval_s=2.0)))
    mix = replace(mix, site=site)
    recorded = run_daemons(mix, slurm_place / "twin")
    jobs, timing = as_taken(mix, recorded)
    result = replay_like_slurm(jobs, site, timing=timing)
    check_nodes(site, result)
    nodes = [host_list(result.nodes_of(job)) for job in range(NUM_JOBS)]
    found = agreement(result.start_s + recorded.submit_s[0], nodes, recorded)
    # The full comparison reaches more; here a busy machine may be late with everything.
    assert found.rank_correlation > 0.9, found
    assert found.median_difference_s < 2 * 2.0, found
    assert found.share_on_same_nodes > 0.3, found


def test_ranks_of_equal_values_are_their_mean() -> None:
    assert ranks(np.array([3.0, 1.0, 3.0, 2.0])).tolist() == [3.5, 1.0, 3.5, 2.0]


def test_node_lists_are_written_as_slurm_writes_them() -> None:
    assert host_list(["n03"]) == "n03"
    assert host_list(["n05", "n01", "n02"]) == "n[01-02,05]"


def test_requests_become_options() -> None:
    request = ResourceRequest(("gpu",), 4, 2, 2, 2, 2, gpus_per_node={"a100": 1}, is_exclusive=True)
    options = options_of(replace(request, memory_bytes_per_node=100.0 * MIB), 61.0)
    assert options == [
        "--ntasks=4",
        "--cpus-per-task=2",
        "--time=2",
        "--nodes=2-2",
        "--partition=gpu",
        "--ntasks-per-node=2",
        "--mem=100M",
        "--gres=gpu:a100:1",
        "--exclusive",
    ]


def test_a_site_becomes_a_configuration() -> None:
    nodes = (
        SiteNode("a1", 4, 1000 * MIB, weight=3, features=frozenset({"ib"})),
        SiteNode("a2", 8, gpus={"x": 2, "y": 1}),
    )
    partitions = (
        Partition("p", ("a1", "a2"), priority_tier=7, max_time_s=90.0, max_nodes=1),
        Partition("q", ("a2",), is_default=True, is_exclusive=True),
    )
    policy = SitePolicy(PriorityFactors(age=5.0), SchedulerTiming(bf_interval_s=4.0, bf_continue=True))
    site = Site("s", nodes, partitions, policy=policy)
    place = Place(Path("/bed"), 7000, (7001, 7002), "me", "here")
    spec = TestbedSpec.of_site(site)
    text = slurm_conf(spec, place, site, site_settings(site))
    assert spec.node_names == ("a1", "a2")
    assert "NodeName=a1 NodeHostname=here NodeAddr=127.0.0.1 Port=7001 CPUs=4" in text
    assert "RealMemory=1000 Weight=3 State=UNKNOWN Feature=ib" in text
    assert "Gres=gpu:x:2,gpu:y:1" in text
    assert "PartitionName=p Nodes=a1,a2 Default=NO State=UP PriorityTier=7" in text
    assert "MaxTime=2 MaxNodes=1" in text
    assert "PartitionName=q Nodes=a2 Default=YES" in text
    assert "OverSubscribe=EXCLUSIVE" in text
    assert "bf_interval=4" in text
    assert "bf_continue" in text
    assert "PriorityWeightAge=5" in text
    gres = gres_conf(spec, place, site)
    assert "NodeName=a2 Name=gpu Type=x File=/bed/dev/gpu[0-1]" in gres
    assert "NodeName=a2 Name=gpu Type=y File=/bed/dev/gpu[2-2]" in gres
