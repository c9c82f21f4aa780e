"""Placing JAX functions: what comes back fits together, and mistakes are explained."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import stretto
from stretto import catalog
from stretto.core.cluster import Cluster
from stretto.core.validate import check_schedule
from stretto.errors import Infeasible, InvalidInput, MissingExtra, UnknownName
from stretto.reports.place_devices import cluster_of
from stretto.reports.placement import Placement

jax = pytest.importorskip("jax")
jnp = pytest.importorskip("jax.numpy")

PAGE = Path(__file__).resolve().parents[2] / "docs" / "place.md"


def shape(*sizes: int) -> Any:
    return jax.ShapeDtypeStruct(sizes, "float32")


def mlp(x: Any, *weights: Any) -> Any:
    for w in weights:
        x = jax.nn.relu(x @ w)
    return x


def attention(x: Any, wq: Any, wk: Any, wv: Any) -> Any:
    return sum(jax.nn.softmax((x @ wq[h]) @ (x @ wk[h]).T) @ (x @ wv[h]) for h in range(4))


HEADS = (shape(2048, 512), *[shape(4, 512, 64)] * 3)


@pytest.fixture(scope="module")
def placed() -> Placement:
    return stretto.place(attention, *HEADS, devices="gpu:4@50GB/s", policy="heft")


def test_a_chain_stays_on_one_device() -> None:
    placement = stretto.place(mlp, shape(64, 512), shape(512, 512), shape(512, 512), devices=4, policy="heft")
    assert [row.primitive for row in placement.operations] == ["dot_general", "dot_general"]
    assert len({row.device for row in placement.operations}) == 1
    assert placement.speedup_over_single == pytest.approx(1.0)
    assert "at its lower bound when tasks take the assumed time" in repr(placement)
    assert "optimal" not in repr(placement)


def test_heads_run_side_by_side(placed: Placement) -> None:
    assert 1.5 < placed.speedup_over_single <= 4
    assert placed.single_device_s == pytest.approx(placed.speedup_over_single * placed.makespan_s)
    assert {row.device for row in placed.operations} == {"gpu0", "gpu1", "gpu2", "gpu3"}
    assert placed.lower_bound_s <= placed.makespan_s
    check_schedule(placed.result.problem, placed.schedule)


def test_the_table_is_the_schedule(placed: Placement) -> None:
    assert len(placed.operations) == placed.graph.num_tasks
    assert [row.start_s for row in placed.operations] == sorted(placed.schedule.start_s.tolist())
    assert max(row.end_s for row in placed.operations) == placed.makespan_s
    for row in placed.operations:
        task = placed.graph.index_of[row.operation]
        assert row.device == f"gpu{placed.plan.assignment[task]}" == placed.device_of[row.operation]
        assert row.end_s == placed.schedule.finish_s[task]


def test_it_prints_the_gist(placed: Placement) -> None:
    lines = repr(placed).splitlines()
    assert re.search(r"times as fast as the best single device: at most [\d.]+ % above its lower bound if ", lines[0])
    assert re.fullmatch(r"attention: \d+ operations on 4 of 4 devices \(gpu:4@50GB/s\), by heft", lines[1])
    assert lines[2] == f"costs: {placed.costs}" == "costs: assumed (roofline, typical CPU and GPU)"
    assert lines[4].split() == ["device", "operations", "busy", "peak", "memory"]
    assert lines[10].split() == ["operation", "device", "start", "end"]
    num_notes = len(placed.notes)
    assert lines[-1 - num_notes] == f"... and {placed.graph.num_tasks - 12} more"
    assert lines[-num_notes:] == [f"note: {note}" for note in placed.notes]
    assert len(lines) == 3 + 6 + 14 + 1 + num_notes


def test_it_draws_and_becomes_json(placed: Placement, tmp_path: Path) -> None:
    placed.gantt(tmp_path / "plan.html")
    assert "attention by heft" in (tmp_path / "plan.html").read_text()
    assert placed.to_json()["makespan_s"] == placed.makespan_s


def test_options_reach_the_planner() -> None:
    seen = []
    placement = stretto.place(
        attention, *HEADS, devices=2, policy="annealing", time_limit_s=0.3, seed=3, contention="fifo",
        params={"discipline": "work-conserving"}, on_progress=seen.append,
    )  # fmt: skip
    assert placement.result.seed == 3
    assert placement.schedule.discipline == "work-conserving"
    assert placement.schedule.contention == "fifo"
    assert seen


def test_keyword_arguments_are_traced() -> None:
    def scaled(x: Any, *, by: Any) -> Any:
        return jnp.sin(x) * by

    placement = stretto.place(scaled, shape(8), devices=2, policy="heft", example_kwargs={"by": shape(8)})
    assert [row.primitive for row in placement.operations] == ["sin"]
    alone = stretto.place(scaled, shape(8), devices=2, policy="heft", example_kwargs={"by": shape(8)}, group=False)
    assert [row.primitive for row in alone.operations] == ["sin", "mul"]


def test_doppler_is_the_default_once_it_is_in_the_catalog(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(catalog.PLANNERS, "doppler", raising=False)
    assert stretto.place(mlp, shape(4, 4), shape(4, 4), devices=2).result.policy == "heft"
    monkeypatch.setitem(catalog.PLANNERS, "doppler", catalog.PLANNERS["etf"])
    assert stretto.place(mlp, shape(4, 4), shape(4, 4), devices=2).result.policy == "doppler"


def test_devices_in_every_form() -> None:
    assert cluster_of(3).num_devices == 3
    assert cluster_of(3).bandwidth[0, 1] == 16e9
    assert cluster_of("cpu:2,gpu:1").kinds == ("cpu", "gpu")
    cluster = Cluster.parse("gpu:2")
    assert cluster_of(cluster) is cluster


@pytest.mark.parametrize(
    ("fn", "args", "options", "message"),
    [
        (3, (), {}, r"fn: int is not a function"),
        (mlp, (), {}, r"fn mlp: cannot be traced on \(\): TypeError: .*missing 1 required"),
        (mlp, (shape(2, 3), shape(4, 5)), {}, r"fn mlp: cannot be traced on \(float32\[2,3\], float32\[4,5\]\)"),
        (mlp, ("text", 1), {}, r"cannot be traced on \(str, int\)"),
        (mlp, (shape(2, 3),), {}, r"has no operations"),
        (mlp, (shape(2, 3), shape(3, 5)), {"devices": 0}, r"devices: 0"),
        (mlp, (shape(2, 3), shape(3, 5)), {"devices": True}, r"devices: bool"),
        (mlp, (shape(2, 3), shape(3, 5)), {"devices": 2.5}, r"devices: float"),
        (mlp, (shape(2, 3), shape(3, 5)), {"devices": "gpu;4"}, r"gpu;4"),
    ],
)
def test_mistakes_are_explained(fn: Any, args: tuple[Any, ...], options: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        stretto.place(fn, *args, **{"devices": 2, "policy": "heft"} | options)


def test_a_misspelt_policy_is_found_before_tracing() -> None:
    with pytest.raises(UnknownName, match="heft"):
        stretto.place(lambda: 1 / 0, devices=2, policy="hefd")


def test_without_jax_the_message_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "jax", None)
    with pytest.raises(MissingExtra, match=r"pip install 'stretto\[jax\]'"):
        stretto.place(mlp, shape(2, 3), shape(3, 5), devices=2, policy="heft")


def test_where_no_device_can_run_all_the_lead_is_infinite(placed: Placement, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any, **__: Any) -> None:
        raise Infeasible("nowhere")

    monkeypatch.setattr("stretto.reports.placement.evaluate", refuse)
    assert Placement(placed.result).speedup_over_single == float("inf")
    assert "no single device can run all of it" in Placement(placed.result).summary()


def test_importing_stretto_loads_no_jax() -> None:
    code = "import stretto, sys; stretto.place; assert 'jax' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_the_python_of_the_page_runs() -> None:
    (source,) = re.findall(r"^```python\n(.*?)^```$", PAGE.read_text(), re.DOTALL | re.MULTILINE)
    done = subprocess.run([sys.executable, "-c", source], capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    first, second = done.stdout.splitlines()[:2]
    assert first.startswith("attention takes ")
    assert re.fullmatch(r"attention: \d+ operations on 4 of 4 devices \(gpu:4@16GB/s\), by annealing", second)
