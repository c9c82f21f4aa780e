"""Unmodified Dask graphs run where and in which order our plan says."""

from __future__ import annotations

import os
import signal
import time
from typing import Any

import numpy as np
import pytest
from dask_graphs import dask_graph, mark, named_cluster, random_graph, run_all

import stretto
from stretto.core.cluster import Cluster, Device
from stretto.core.graph import TaskGraph
from stretto.errors import InvalidInput, UnknownName

ABC = Cluster.uniform([Device(name) for name in "abc"])


def planned(graph: TaskGraph, policy: str = "heft", cluster: Cluster = ABC) -> stretto.Plan:
    return stretto.plan(graph, cluster, policy).plan


@pytest.mark.parametrize("policy", ["heft", "random", "etf"])
def test_every_task_runs_on_the_worker_of_the_plan(inproc: tuple[Any, Any], policy: str) -> None:
    _, client = inproc
    graph = random_graph(80, seed=3)
    plan = planned(graph, policy)
    with stretto.dask.schedule(client, plan=(graph, ABC, plan)) as report:
        ran = run_all(client, graph)
    names = [ABC.devices[device].name for device in plan.assignment]
    assert [worker for _, worker, _, _ in ran] == names
    assert report.num_tasks == report.num_ended == 80
    assert report.errors == []


def test_the_scheduler_plans_by_itself(inproc: tuple[Any, Any]) -> None:
    _, client = inproc
    graph = random_graph(60, seed=4)
    with stretto.dask.schedule(client, policy="round-robin", cluster=ABC, durations=graph) as report:
        ran = run_all(client, graph)
    assert {worker for _, worker, _, _ in ran} == {"a", "b", "c"}
    assert report.num_graphs == 1
    assert report.hook_s > 0


def test_sequence_keeps_the_planned_order_of_each_worker(inproc: tuple[Any, Any]) -> None:
    _, client = inproc
    graph = random_graph(90, seed=5)
    plan = planned(graph, "random")
    with stretto.dask.schedule(client, plan=(graph, ABC, plan), discipline="sequence"):
        ran = run_all(client, graph, 0.001)
    for device in range(3):
        wanted = [task for task in plan.order.tolist() if plan.assignment[task] == device]
        begins = [ran[task][2] for task in wanted]
        assert begins == sorted(begins)
        assert all(ran[task][1] == ABC.devices[device].name for task in wanted)


def test_of_ready_tasks_the_first_in_the_plan_goes_first(inproc: tuple[Any, Any]) -> None:
    _, client = inproc
    num = 30
    graph = TaskGraph.from_edges(
        np.full(num, 0.01), [0] * (num - 1), range(1, num), 0.0, task_names=tuple(f"mark-{t}" for t in range(num))
    )
    order = np.concatenate([[0], 1 + np.random.default_rng(1).permutation(num - 1)]).astype(np.int32)
    plan = stretto.Plan(np.zeros(num, dtype=np.int32), order)
    with stretto.dask.schedule(client, plan=(graph, ABC, plan)):
        ran = run_all(client, graph, 0.01)
    begins = [ran[task][2] for task in order.tolist()]
    assert begins == sorted(begins)


def test_threads_of_a_worker_are_devices_that_share_their_data() -> None:
    from distributed import Client, LocalCluster

    graph = random_graph(40, seed=12)
    with (
        LocalCluster(n_workers=1, threads_per_worker=2, processes=False, dashboard_address=":0") as cluster,
        Client(cluster, set_as_default=False) as client,
    ):
        for discipline in ("work-conserving", "sequence"):
            with stretto.dask.schedule(client, discipline=discipline, durations=graph) as report:  # type: ignore[arg-type]
                ran = run_all(client, graph, 0.002)
            assert report.num_ended == 40
            begins, ends = np.array([r[2] for r in ran]), np.array([r[3] for r in ran])
            at_once = [int(((begins <= begin) & (ends > begin)).sum()) for begin in begins]
            assert max(at_once) == 2


def test_work_stealing_leaves_placed_tasks_alone(inproc: tuple[Any, Any]) -> None:
    cluster, client = inproc
    assert "stealing" in cluster.scheduler.extensions
    num = 40
    graph = TaskGraph.from_edges(np.full(num, 1.0), [], [], 0.0, task_names=tuple(f"mark-{t}" for t in range(num)))
    plan = stretto.Plan(np.zeros(num, dtype=np.int32), np.arange(num, dtype=np.int32))
    with stretto.dask.schedule(client, plan=(graph, ABC, plan)):
        ran = run_all(client, graph, 0.03)  # long enough for the thief to come by, every 100 ms
    assert {worker for _, worker, _, _ in ran} == {"a"}


def test_two_processes_and_a_plain_collection(processes: tuple[Any, Any]) -> None:
    import dask.array as da

    _, client = processes
    x = da.ones((60, 60), chunks=(10, 10))
    expected = float((x + x.T).sum().compute(scheduler="sync"))
    with stretto.dask.schedule(client, policy="heft") as report:
        found = client.compute((x + x.T).sum()).result()
    assert float(found) == expected
    assert report.num_tasks == report.num_ended > 30
    assert report.errors == []


def test_kinds_of_workers_count(inproc: tuple[Any, Any]) -> None:
    _, client = inproc
    cluster = Cluster.uniform([Device("a", "slow"), Device("b", "fast"), Device("c", "slow")])
    durations = {"mark": {"slow": 1.0, "fast": 0.001}}
    graph = random_graph(20, seed=6)
    with stretto.dask.schedule(client, cluster=cluster, durations=durations):
        ran = run_all(client, graph)
    assert {worker for _, worker, _, _ in ran} == {"b"}


def test_what_is_in_memory_already_is_not_moved_without_need(inproc: tuple[Any, Any]) -> None:
    _, client = inproc
    big = client.submit(bytes, 10_000_000, workers=["c"], pure=False)
    big.result()
    with stretto.dask.schedule(client, default_duration_s=0.001):
        found = client.submit(lambda data: (len(data), mark(0, 0.0)[1]), big, pure=False).result()
    assert found == (10_000_000, "c")


def test_single_tasks_see_what_the_workers_have_to_do(inproc: tuple[Any, Any]) -> None:
    _, client = inproc
    with stretto.dask.schedule(client) as report:
        futures = [client.submit(mark, number, 0.1, pure=False) for number in range(9)]
        workers = [future.result()[1] for future in futures]
    assert report.num_graphs == 9
    assert {workers.count(name) for name in "abc"} == {3}


def test_restrictions_of_the_user_hold(inproc: tuple[Any, Any]) -> None:
    _, client = inproc
    with stretto.dask.schedule(client) as report:
        futures = [client.submit(mark, number, 0.0, workers=["b"], pure=False) for number in range(10)]
        assert {future.result()[1] for future in futures} == {"b"}
    assert report.errors == []


def test_tasks_that_need_a_resource_go_where_it_is() -> None:
    from distributed import Client, Scheduler, SpecCluster, Worker

    options = {"nthreads": 1, "protocol": "inproc", "dashboard": False, "memory_limit": 0}
    workers = {
        "plain": {"cls": Worker, "options": options},
        "with-gpu": {"cls": Worker, "options": {**options, "resources": {"GPU": 1}}},
    }
    scheduler = {"cls": Scheduler, "options": {"protocol": "inproc", "dashboard": False, "dashboard_address": ":0"}}
    with SpecCluster(scheduler=scheduler, workers=workers) as cluster, Client(cluster, set_as_default=False) as client:
        for discipline in ("work-conserving", "sequence"):
            with stretto.dask.schedule(client, discipline=discipline) as report:  # type: ignore[arg-type]
                on_gpu = [client.submit(mark, n, 0.0, resources={"GPU": 1}, pure=False) for n in range(6)]
                assert {future.result()[1] for future in on_gpu} == {"with-gpu"}
                late = client.submit(mark, 7, 0.0, workers=["not-there-yet"], pure=False)
                assert client.submit(mark, 8, 0.0, pure=False).result()[0] == 8
                assert late.status == "pending"
                late.cancel()
            assert report.errors == []


def test_after_the_context_dask_decides_again(inproc: tuple[Any, Any]) -> None:
    cluster, client = inproc
    with stretto.dask.schedule(client):
        pass
    assert not [name for name in cluster.scheduler.plugins if name.startswith("stretto")]
    assert client.submit(mark, 1, 0.0, pure=False).result()[0] == 1


def test_tasks_under_way_at_the_end_of_the_context_still_run(inproc: tuple[Any, Any]) -> None:
    cluster, client = inproc
    graph = random_graph(30, seed=7)
    with stretto.dask.schedule(client, discipline="sequence"):
        futures = client.get(dask_graph(graph, 0.01), [f"mark-{task}" for task in range(30)], sync=False)
    assert len(client.gather(futures)) == 30
    deadline = time.monotonic() + 120
    while [name for name in cluster.scheduler.plugins if name.startswith("stretto")]:
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_late_decisions_keep_one_running_and_one_queued(inproc: tuple[Any, Any]) -> None:
    from distributed import SchedulerPlugin

    cluster, client = inproc

    class Watch(SchedulerPlugin):  # type: ignore[misc]
        name = "watch"
        deepest = 0

        def transition(self, key: Any, start: str, finish: str, *_: Any, **__: Any) -> None:
            held = [len(worker.processing) for worker in cluster.scheduler.workers.values()]
            self.deepest = max(self.deepest, *held)

    watch = Watch()
    cluster.scheduler.add_plugin(watch)
    graph = random_graph(60, seed=8)
    with stretto.dask.dispatch(client, durations=graph) as report:
        ran = run_all(client, graph, 0.002)
    assert [number for number, *_ in ran] == list(range(60))
    assert {worker for _, worker, _, _ in ran} == {"a", "b", "c"}
    assert watch.deepest == 2
    assert report.num_ended == 60


def test_cancelled_tasks_leave_room_for_others(inproc: tuple[Any, Any]) -> None:
    _, client = inproc
    only_a = Cluster.uniform([Device("a")])
    graph = TaskGraph.from_edges(np.full(20, 0.01), [], [], 0.0)
    with stretto.dask.schedule(client, cluster=only_a, discipline="sequence"):
        futures = client.get(dask_graph(graph, 0.02), [f"mark-{task}" for task in range(20)], sync=False)
        client.cancel(futures[2:16])
        kept = [*futures[:2], *futures[16:]]
        assert sorted(number for number, *_ in client.gather(kept)) == [0, 1, 16, 17, 18, 19]


def test_a_failing_task_fails_its_children_only(inproc: tuple[Any, Any]) -> None:
    _, client = inproc

    def fail() -> None:
        raise ValueError("on purpose")

    for discipline in ("work-conserving", "sequence"):
        with stretto.dask.schedule(client, discipline=discipline) as report:  # type: ignore[arg-type]
            bad = client.submit(fail, pure=False)
            child = client.submit(lambda value: value, bad, pure=False)
            good = client.submit(mark, 5, 0.0, pure=False)
            assert good.result()[0] == 5
            with pytest.raises(ValueError, match="on purpose"):
                child.result()
        assert report.errors == []


def test_a_lost_worker_s_tasks_are_planned_anew(inproc: tuple[Any, Any]) -> None:
    _, client = inproc
    graph = random_graph(60, seed=9)
    for discipline in ("work-conserving", "sequence"):
        with stretto.dask.schedule(client, "round-robin", discipline=discipline) as report:  # type: ignore[arg-type]
            # Two seconds of work: on a busy machine, too, the worker goes before the end.
            futures = client.get(dask_graph(graph, 0.1), [f"mark-{task}" for task in range(60)], sync=False)
            time.sleep(0.1)
            gone = next(iter(client.scheduler_info()["workers"]))
            client.retire_workers([gone])
            ran = client.gather(futures)
        assert sorted(number for number, *_ in ran) == list(range(60))
        assert report.num_replans >= 1
        client.cancel(futures, force=True)


@pytest.mark.parametrize("discipline", ["work-conserving", pytest.param("sequence", marks=pytest.mark.long)])
def test_all_workers_may_die_and_come_back(discipline: Any) -> None:
    from distributed import Client

    graph = random_graph(60, seed=10)
    with named_cluster(["a", "b"], processes=True) as cluster, Client(cluster, set_as_default=False) as client:
        client.wait_for_workers(2)
        pids = list(client.run(os.getpid).values())
        with stretto.dask.schedule(client, "round-robin", discipline=discipline) as report:
            futures = client.get(dask_graph(graph, 0.15), [f"mark-{task}" for task in range(60)], sync=False)
            for pid in pids:
                time.sleep(0.2)
                os.kill(pid, signal.SIGKILL)  # our own workers; their nannies start new ones
            ran = client.gather(futures)
        assert sorted(number for number, *_ in ran) == list(range(60))
        assert report.num_replans >= 2
        assert report.errors == []


def test_wrong_wishes_are_told_at_once(inproc: tuple[Any, Any]) -> None:
    _, client = inproc
    with pytest.raises(UnknownName, match="heft"), stretto.dask.schedule(client, "hefd"):
        pass
    with pytest.raises(InvalidInput, match="no worker has this name"), stretto.dask.schedule(client, cluster="cpu:2"):
        pass
    with pytest.raises(InvalidInput, match="discipline"), stretto.dask.schedule(client, discipline="x"):  # type: ignore[arg-type]
        pass
    with pytest.raises(InvalidInput, match="-1"), stretto.dask.schedule(client, durations={"mark": -1}):
        pass
    with stretto.dask.schedule(client), pytest.raises(InvalidInput, match="already"), stretto.dask.schedule(client):
        pass


def test_a_search_runs_beside_the_scheduler(inproc: tuple[Any, Any]) -> None:
    _, client = inproc
    graph = random_graph(40, seed=11)
    with stretto.dask.schedule(client, "annealing", time_limit_s=2.0, durations=graph, cluster=ABC) as report:
        futures = client.get(dask_graph(graph), [f"mark-{task}" for task in range(40)], sync=False)
        assert client.run_on_scheduler(lambda: "awake") == "awake"
        ran = client.gather(futures)
    assert sorted(number for number, *_ in ran) == list(range(40))
    assert report.plan_s > report.hook_s
    assert report.errors == []


def test_a_search_that_fails_leaves_the_graph_to_dask(inproc: tuple[Any, Any]) -> None:
    _, client = inproc
    with stretto.dask.schedule(client, "cp-sat", params={"max_tasks": 3}) as report:
        ran = run_all(client, random_graph(10, seed=2))
    assert len(ran) == 10
    assert "cp-sat" in report.errors[0]
