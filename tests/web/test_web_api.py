"""The HTTP API against a real server: what it plans, replays, explains and tells, and how it is stopped."""

from __future__ import annotations

import base64
import gzip
import json
import time
from typing import Any

import httpx
import pytest

from stretto import workloads
from stretto.api import plan
from stretto.files.graphs.native import FORMAT
from stretto.reports.record import recording
from stretto.runlog import RunLog

CLUSTER = "cpu:6x1.0,gpu:2x5.0"
DOT = "digraph g { a [work=2]; b [work=3]; c [work=1]; a -> b [size=1e6]; a -> c [size=2e6]; }"
LONG = {"workload": "random-dag", "workload_params": {"num_tasks": 300}, "cluster": "cpu:4", "policy": "annealing"}


@pytest.fixture(scope="module")
def client(server: Any) -> Any:
    with server.client() as found:
        yield found


def post(client: httpx.Client, path: str, body: dict[str, Any], status: int = 200) -> dict[str, Any]:
    reply = client.post(path, json=body)
    assert reply.status_code == status, reply.text
    found: dict[str, Any] = reply.json()
    return found


def until(condition: Any, seconds: float = 60.0) -> None:
    """Wait for something that is bound to happen."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it has not happened"
        time.sleep(0.1)


def test_a_plan_is_the_one_that_the_library_makes(client: httpx.Client) -> None:
    body = {
        "workload": "random-dag",
        "workload_params": {"num_tasks": 60, "seed": 3},
        "cluster": CLUSTER,
        "policy": "peft",
    }
    found = post(client, "/api/plan", body)
    expected = plan(workloads.random_dag(num_tasks=60, seed=3), CLUSTER, policy="peft")
    assert found["assignment"] == expected.plan.assignment.tolist()
    assert found["makespan_s"] == expected.makespan_s
    kept = client.get(f"/api/runs/{found['run_id']}").json()
    assert kept["status"] == "done"
    assert kept["summary"]["makespan_s"] == expected.makespan_s
    assert kept["settings"]["command"].startswith("stretto plan 'workload:random-dag?num_tasks=60&seed=3'")


@pytest.mark.parametrize("form", ["text", "object", "base64", "dot"])
def test_graphs_come_in_any_format_and_form(client: httpx.Client, form: str) -> None:
    graph = workloads.random_dag(num_tasks=20, seed=1)
    data = FORMAT.write(graph)
    body: dict[str, Any] = {"cluster": CLUSTER, "graph": data.decode()}
    if form == "object":
        body["graph"] = json.loads(data)
    elif form == "base64":
        body |= {"graph": base64.b64encode(gzip.compress(data)).decode(), "encoding": "base64"}
    elif form == "dot":
        body["graph"] = DOT
    assert post(client, "/api/plan", body)["num_tasks"] == (3 if form == "dot" else 20)


def test_a_cluster_may_be_toml(client: httpx.Client) -> None:
    toml = '[[device]]\nname = "one"\nkind = "cpu"\nprice_usd_per_hour = 3.0\n[[device]]\nname = "two"\nkind = "cpu"\n'
    found = post(client, "/api/plan", {"graph": DOT, "cluster": toml})
    assert found["devices"] == ["one", "two"]


@pytest.mark.parametrize(
    ("path", "body", "word", "field", "value"),
    [
        ("/api/plan", {"workload": "random-dga", "cluster": "cpu:1"}, "random-dag", None, "random-dga"),
        ("/api/plan", {"workload": "fft", "cluster": "cpu:zero"}, "cpu:zero", "cluster", None),
        ("/api/plan", {"workload": "fft"}, "name the machines", "cluster", None),
        ("/api/plan", {"workload": "fft", "cluster": "cpu:1", "polcy": "heft"}, "not permitted", "polcy", "heft"),
        ("/api/plan", {"workload": "fft", "cluster": "cpu:1", "seed": -1}, "greater than", "seed", -1),
        ("/api/plan", {"graph": "gibberish", "cluster": "cpu:1"}, "no known graph format", "graph", None),
        ("/api/plan", {"workload": "fft", "cluster": "/etc/passwd"}, "/etc/passwd", "cluster", None),
        (
            "/api/plan",
            {"workload": "fft", "cluster": "cpu:2", "time_limit_s": 999},
            "limit of this server",
            "time_limit_s",
            999,
        ),
        (
            "/api/replay",
            {"generator": "fitted", "generator_params": {"trace": "/etc/passwd"}},
            "number or a word",
            None,
            None,
        ),
        ("/api/replay", {"trace": "gibberish"}, "no known trace format", "trace", None),
        ("/api/replay", {"generator": "lublin", "strategy": "sfj"}, "sjf", None, "sfj"),
    ],
)
def test_wrong_requests_are_answered_with_what_and_where(
    client: httpx.Client, path: str, body: dict[str, Any], word: str, field: str | None, value: Any
) -> None:
    found = post(client, path, body, 422)
    assert word in found["error"]
    if field is not None:
        assert found["field"] == field
    if value is not None:
        assert found["value"] == value


@pytest.mark.parametrize("depth", [50, 900, 100_000])
def test_deep_documents_are_refused_in_words(client: httpx.Client, depth: int) -> None:
    nested = '{"a":' * depth + "1" + "}" * depth
    body = f'{{"graph": {nested}, "cluster": "cpu:1"}}'
    reply = client.post("/api/plan", content=body, headers={"Content-Type": "application/json"})
    assert reply.status_code in (400, 422)
    assert reply.json()["error"]


def test_text_that_utf8_cannot_hold_is_refused_in_words(client: httpx.Client) -> None:
    body = b'{"workload": "fft", "cluster": "cpu:\\ud800"}'
    reply = client.post("/api/plan", content=body, headers={"Content-Type": "application/json"})
    assert reply.status_code == 422
    assert reply.json()["field"]


def test_a_replay_and_the_same_jobs_otherwise(client: httpx.Client) -> None:
    body = {"generator": "lublin", "generator_params": {"num_jobs": 300, "num_procs": 64, "seed": 2}, "strategy": "saf"}
    first = post(client, "/api/replay", body)
    other = post(client, f"/api/runs/{first['run_id']}/what-if", {"strategy": "fcfs"})
    direct = post(client, "/api/replay", body | {"strategy": "fcfs"})
    assert other["after"]["summary"]["mean_wait_s"] == direct["mean_wait_s"]
    assert other["before"]["summary"]["mean_wait_s"] == first["mean_wait_s"] != direct["mean_wait_s"]


POOLS = "own:2*16x1.0,cloud:0-8*8@0.40~90s"


@pytest.mark.parametrize("change", [{"strategy": "saf"}, {"pool_rule": "fastest"}, {"pool_rule": "burst"}])
def test_a_replay_on_pools_and_the_same_jobs_otherwise(client: httpx.Client, change: dict[str, str]) -> None:
    made = {"generator": "lublin", "generator_params": {"num_jobs": 300, "num_procs": 64, "seed": 2}}
    body = {**made, "strategy": "fcfs", "pools": POOLS, "pool_rule": "cheapest"}
    first = post(client, "/api/replay", body)
    other = post(client, f"/api/runs/{first['run_id']}/what-if", change)
    direct = post(client, "/api/replay", {**body, **change})
    for name in ("mean_flow_s", "cost_usd", "makespan_s"):
        assert other["after"]["summary"][name] == direct[name]
        assert other["before"]["summary"][name] == first[name]
    command = other["after"]["settings"]["command"]
    assert f"--pools '{POOLS}'" in command
    assert "--pool-rule " + change.get("pool_rule", "cheapest") in command


def test_a_replay_moves_to_other_pools(client: httpx.Client) -> None:
    body = {"generator": "lublin", "generator_params": {"num_jobs": 100, "num_procs": 64, "seed": 2}}
    first = post(client, "/api/replay", body)
    other = post(client, f"/api/runs/{first['run_id']}/what-if", {"pools": "cloud:0-16*8@1.5"})
    assert first["cost_usd"] == 0.0
    assert other["after"]["summary"]["cost_usd"] > 0.0
    assert "pools" in post(client, f"/api/runs/{first['run_id']}/what-if", {"pools": "cloud"}, 422)["error"]


def test_a_rack_decided_by_another_rule(server: Any, client: httpx.Client) -> None:
    report_rack = pytest.importorskip("stretto.reports.racks.show")
    show = report_rack.RackShow("two-nics", "mct", stream=1, seed=0)
    with RunLog.open(server.runs) as log:
        settings = {"policy": "mct", "cluster": "two-nics", "stream": 1, "seed": 0}
        with recording(log, "rack", "two-nics", settings) as run:
            report_rack.record_rack(run, show)
            for look, ended in show.moments():
                report_rack.record_moment(run, look, ended)
            run.finish("done", show.watched.summary())
    other = post(client, f"/api/runs/{run.id}/what-if", {"policy": "srpt-true"})
    direct = report_rack.RackShow("two-nics", "srpt-true", stream=1, seed=0)
    for _ in direct.moments():
        pass
    expected = direct.watched.summary()["mean_completion_s"]
    assert other["after"]["summary"]["mean_completion_s"] == pytest.approx(expected)
    assert other["before"]["summary"]["mean_completion_s"] != pytest.approx(expected)
    assert other["after"]["settings"]["parent"] == run.id
    assert "srpt-belief" in post(client, f"/api/runs/{run.id}/what-if", {"policy": "srtp-belief"}, 422)["error"]


def test_a_trace_comes_packed(client: httpx.Client) -> None:
    rows = "".join(f"{job} {10 * job} 0 60 4 -1 -1 4 120 -1 1 1 1 -1 -1 -1 -1 -1\n" for job in range(1, 21))
    body = {"trace": base64.b64encode(gzip.compress(rows.encode())).decode(), "encoding": "base64", "procs": 8}
    assert post(client, "/api/replay", body)["num_jobs"] == 20
    assert "base64" in post(client, "/api/replay", body | {"trace": "no!"}, 422)["error"]


def test_a_plan_that_nobody_waited_for_is_fetched_later(client: httpx.Client, ids: dict[str, str]) -> None:
    body = {"workload": "fft", "cluster": CLUSTER, "policy": "etf"}
    job = post(client, "/api/plan", body | {"wait": False}, 202)
    until(lambda: client.get(f"/api/jobs/{job['id']}").json()["state"] == "done")
    later = client.get(f"/api/runs/{job['run_id']}/plan").json()
    assert later["assignment"] == post(client, "/api/plan", body)["assignment"]
    assert client.get(f"/api/runs/{ids['queue']}/plan").status_code == 404


def test_names_are_those_of_the_catalog(client: httpx.Client) -> None:
    names = client.get("/api/names").json()
    assert "heft" in names["policies"]
    assert {"saf", "mars"} <= set(names["strategies"])


def test_a_plan_decided_otherwise(client: httpx.Client, ids: dict[str, str]) -> None:
    found = post(client, f"/api/runs/{ids['small']}/what-if", {"policy": "round-robin"})
    expected = plan(workloads.random_dag(num_tasks=40, seed=1), CLUSTER, policy="round-robin")
    assert found["after"]["summary"]["makespan_s"] == expected.makespan_s
    assert found["after"]["settings"]["parent"] == ids["small"]
    elsewhere = post(client, f"/api/runs/{ids['small']}/what-if", {"cluster": "cpu:1"})
    assert elsewhere["after"]["summary"]["num_devices"] == 1


def test_a_task_is_explained_and_an_epoch_too(client: httpx.Client, ids: dict[str, str]) -> None:
    task = client.get(f"/api/explain/{ids['small']}/t7").json()
    assert [one["is_chosen"] for one in task["alternatives"]].count(True) == 1
    assert len(task["alternatives"]) == 8
    assert task["reason"].endswith(".")
    epoch = client.get(f"/api/explain/{ids['queue']}/0").json()
    assert epoch["chosen"] in epoch["cost"]
    assert client.get(f"/api/explain/{ids['small']}/nothing").status_code == 422
    assert client.get("/api/explain/no-such-run/1").status_code == 404


def test_events_are_listed_and_streamed_from_any_place(client: httpx.Client, ids: dict[str, str]) -> None:
    path = f"/api/runs/{ids['lesson']}"
    listed = client.get(f"{path}/events", params={"after": 10, "limit": 5}).json()["events"]
    assert [event["seq"] for event in listed] == [11, 12, 13, 14, 15]
    streamed = [
        json.loads(line[6:]) for line in client.get(f"{path}/stream?after=40").text.splitlines() if line[:5] == "data:"
    ]
    assert [event["seq"] for event in streamed[0]["events"]] == list(range(41, 51))
    assert streamed[-1]["status"] == "done"
    again = client.get(f"{path}/stream", headers={"Last-Event-ID": "50"}).text
    assert "event: events" not in again


def test_a_job_is_cancelled_by_request(client: httpx.Client) -> None:
    job = post(client, "/api/plan", LONG | {"time_limit_s": 50, "wait": False}, 202)
    assert job["state"] == "running"
    ended = client.delete(f"/api/jobs/{job['id']}").json()
    assert ended["state"] == "cancelled"
    until(lambda: client.get(f"/api/runs/{job['run_id']}").json()["status"] == "interrupted")
    assert client.delete(f"/api/jobs/{job['id']}").json()["state"] == "cancelled"
    assert client.get("/api/jobs/000000000000").status_code == 404


def test_a_job_ends_when_its_client_goes_away(server: Any, client: httpx.Client) -> None:
    before = {job["id"] for job in client.get("/api/jobs").json()["jobs"]}
    with pytest.raises(httpx.ReadTimeout), httpx.Client(base_url=server.url, timeout=2.0) as hasty:
        hasty.post("/api/plan", json=LONG | {"time_limit_s": 50})

    def new() -> list[dict[str, Any]]:
        return [job for job in client.get("/api/jobs").json()["jobs"] if job["id"] not in before]

    until(lambda: [job["state"] for job in new()] == ["cancelled"])


def test_health_and_metrics(client: httpx.Client) -> None:
    health = client.get("/api/health").json()
    assert health["status"] == "ok"
    assert health["num_workers"] == 1
    reply = client.get("/metrics")
    assert reply.headers["content-type"].startswith("text/plain; version=0.0.4")
    values = dict(line.rsplit(" ", 1) for line in reply.text.splitlines() if line and line[0] != "#")
    assert float(values['stretto_http_requests_total{method="GET",route="/api/health",status="200"}']) >= 1
    assert float(values['stretto_runs{kind="train",status="done"}']) == 1


def test_the_view_of_a_run_holds_what_its_page_draws(client: httpx.Client, ids: dict[str, str]) -> None:
    view = client.get(f"/api/runs/{ids['large']}/view").json()
    assert len(view["gantt"]["task"]) == 10_000
    assert view["graph"]["kind"] == "groups"
    assert sum(node[4] for node in view["graph"]["nodes"]) == 10_000
    assert max(view["use"]["series"][0]["mean"]) <= 1.0 + 1e-6
    queue = client.get(f"/api/runs/{ids['queue']}/view").json()
    assert len(queue["queue"]["waiting_mean"]) == len(queue["queue"]["waiting_most"])
    assert queue["choices"][0]["cost"]
