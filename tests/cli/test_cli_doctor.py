"""``stretto doctor``: what it finds, and what it calls a fault."""

from __future__ import annotations

from pathlib import Path

import pytest

from stretto.cli import health

from .conftest import Run


@pytest.fixture(autouse=True)
def calm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No settings and no run log of whoever runs the tests."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("STRETTO_CONFIG", "/dev/null")
    monkeypatch.setenv("STRETTO_HOME", str(tmp_path / "home"))
    monkeypatch.delenv("STRETTO_DATA", raising=False)


def test_a_healthy_installation(run: Run) -> None:
    ran = run("doctor")
    assert ran.code == 0, ran.out
    for word in ("Versions", "numba", "Machine", "Extras", "learn", "Nothing needs attention"):
        assert word in ran.out
    found = run("doctor", "--output", "json").json
    assert found["faults"] == []
    assert found["machine"]["usable_cores"] >= 1
    assert found["kernel_cache"]["writable"] is True
    assert not found["run_log"]["exists"]
    assert run("doctor", "--output", "quiet").out == "ok\n"


def test_extras_say_what_is_missing_and_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    real = health.version_of
    monkeypatch.setattr(health, "version_of", lambda name: None if name in ("optax", "onnx") else real(name))
    extras = {entry["name"]: entry for entry in health.extras()}
    assert extras["learn"]["missing"] == ["optax"]
    assert extras["learn"]["install"] == "pip install 'stretto[learn]'"
    assert extras["onnx"]["present"] is False
    assert extras["dask"]["install"] is None
    assert "dev" not in extras


def test_a_damaged_run_log_needs_attention(run: Run, tmp_path: Path) -> None:
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "runs.db").write_bytes(b"this is no database, and long enough to be sure of it" * 20)
    ran = run("doctor")
    assert ran.code == 2
    assert "Needs attention" in ran.out
    assert run("doctor", "--output", "json").json["run_log"]["fault"]


def test_a_run_log_is_counted(run: Run) -> None:
    from stretto.runlog import RunLog

    with RunLog.open() as log:
        log.start("plan", "a", {}).finish("finished", {})
        log.start("plan", "b", {}).finish("finished", {})
    found = run("doctor", "--output", "json").json["run_log"]
    assert (found["num_runs"], found["fault"]) == (2, None)


def test_a_data_folder_that_is_not_there(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STRETTO_DATA", "nowhere")
    ran = run("doctor", "--output", "quiet")
    assert ran.code == 2
    assert "nowhere" in ran.out


def test_every_engine_of_the_catalog_says_whether_it_can_run() -> None:
    from stretto import catalog

    found = health.engines()
    assert [entry["name"] for entry in found][: len(catalog.ENGINES)] == list(catalog.ENGINES)
    for entry in found:
        assert entry["available"] is (entry["reason"] is None)
