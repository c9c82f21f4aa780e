"""Other distributions add components: a real one is installed into a folder of its own and used."""

from __future__ import annotations

import importlib
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from stretto import catalog, registry
from stretto.core.trace import Trace
from stretto.errors import InvalidInput, UnknownName
from stretto.queues.replay import replay

from .conftest import Run

PLUGIN = Path(__file__).resolve().parents[2] / "examples" / "plugin"


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder into which pip has put the example."""
    source = tmp_path_factory.mktemp("source") / "plugin"
    shutil.copytree(PLUGIN, source)
    target = tmp_path_factory.mktemp("site")
    words = ["install", "-q", "--no-deps", "--no-build-isolation", "--no-index", "--target", str(target), str(source)]
    done = subprocess.run([sys.executable, "-m", "pip", *words], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return target


@pytest.fixture
def installed(site: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.syspath_prepend(site)
    importlib.invalidate_caches()
    yield site
    sys.modules.pop("stretto_example", None)


def test_without_the_plugin_its_names_are_unknown(run: Run) -> None:
    run("plan", "workload:fft", "-c", "cpu:2", "--policy", "least-loaded").assert_refused("least-loaded")
    assert registry.plugins("policy") == {}


@pytest.mark.usefixtures("installed")
def test_a_policy_plans_a_workload_and_both_are_listed(run: Run) -> None:
    words = ("plan", "workload:zigzag?num_tasks=30", "-c", "cpu:3", "--policy", "least-loaded", "-p", "weight=0.5")
    ran = run(*words, "--output", "json")
    assert ran.code == 0, ran.err
    assert ran.json["num_tasks"] == 30
    assert ran.json["params"] == {"weight": 0.5}
    assert ran.json["gap"] >= 0
    assert "least-loaded" in run("list", "policies", "--output", "quiet").out.split()
    assert "zigzag" in run("list", "workloads", "--output", "quiet").out.split()
    assert (
        "first"
        in next(e for e in run("list", "policies", "--output", "json").json if e["name"] == "least-loaded")["summary"]
    )
    run("plan", "workload:fft", "-c", "cpu:2", "--policy", "least-loded").assert_refused("did you mean least-loaded")


@pytest.mark.usefixtures("installed")
def test_a_format_is_found_by_its_content(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "graph.txt"
    path.write_text("a > b\na > c\nb > d\nc > d\n")
    ran = run("plan", path, "-c", "cpu:2", "--output", "json")
    assert ran.code == 0, ran.err
    assert ran.json["makespan_s"] == 3.0
    path.write_text("a > b\nwrong\n")
    run("plan", path, "-c", "cpu:2").assert_refused("graph.txt:2", "A > B")


@pytest.mark.usefixtures("installed")
def test_a_strategy_orders_a_queue(run: Run) -> None:
    noon, night = 12 * 3600.0, 23 * 3600.0
    # One processor is taken until after the second job's submission; the later, nightly one then goes first.
    trace = Trace.of([noon, noon + 1, night], [86400.0, 10.0, 10.0], [1, 1, 1])
    assert np.argsort(replay(trace, 1, strategy="fcfs").start_s).tolist() == [0, 1, 2]
    found = replay(trace, 1, strategy="night-owls")
    assert np.argsort(found.start_s).tolist() == [0, 2, 1]
    assert found.spec["strategy"] == "night-owls"
    assert found.trace.deadline_s is None
    jobs = "trace:lublin?num_jobs=80&num_procs=16"
    ran = run("compare", jobs, "--strategies", "fcfs,night-owls", "--backfill", "easy,conservative", "--output", "json")
    assert ran.code == 0, ran.err
    assert {(row["strategy"], row["backfill"]) for row in ran.json["rows"]} == {
        (strategy, backfill) for strategy in ("fcfs", "night-owls") for backfill in ("easy", "conservative")
    }


@pytest.mark.usefixtures("installed")
def test_a_strategy_with_a_wrong_key_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    import stretto_example

    trace = Trace.of([0.0, 1.0], [1.0, 1.0], [1, 1])
    monkeypatch.setattr(stretto_example.NightOwls, "key", lambda self, jobs: np.zeros(3))
    with pytest.raises(InvalidInput, match="must be 2 numbers"):
        replay(trace, 1, strategy="night-owls")


@pytest.mark.usefixtures("installed")
def test_doctor_names_them(run: Run) -> None:
    found = run("doctor", "--output", "json").json["plugins"]
    assert {"kind": "policy", "name": "least-loaded", "target": "stretto_example:LeastLoaded"} in found
    assert len(found) == 4


def _fake(folder: Path, points: str) -> None:
    info = folder / "broken-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: broken\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(points)


def test_a_plugin_that_cannot_be_imported_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _fake(tmp_path, "[stretto.policies]\nbroken = no_such_module:Policy\n")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(InvalidInput, match=r"no_such_module:Policy.*cannot be loaded"):
        registry.lookup("policy", "broken", catalog.PLANNERS)


def test_a_plugin_cannot_replace_what_is_built_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _fake(tmp_path, "[stretto.policies]\nheft = no_such_module:Policy\n")
    monkeypatch.syspath_prepend(tmp_path)
    assert registry.lookup("policy", "heft", catalog.PLANNERS).__name__ == "Heft"
    assert registry.known("policy", catalog.PLANNERS)["heft"] == catalog.PLANNERS["heft"]


def test_kinds_without_plugins_have_none() -> None:
    assert registry.plugins("selector") == {}
    with pytest.raises(UnknownName):
        registry.lookup("backfill", "nothing", catalog.BACKFILLS)
