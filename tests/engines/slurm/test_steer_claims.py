"""Who may steer what: one steerer for each partition, or one for all; it needs no Slurm to show that."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from stretto.engines.slurm.client.jobs import Factors, clamped, parse_factors
from stretto.engines.slurm.client.rest import RestPlace
from stretto.engines.slurm.steer.claims import Claim, SteeringTaken, claim, holder_of
from stretto.engines.slurm.steer.label_store import Label, LabelStore, label_files, label_path, switches_of
from stretto.engines.slurm.steer.steering_guard import watch


def paths(folder: Path) -> tuple[Path, Path, Path]:
    return folder / "all.json", folder / "partition-a.json", folder / "partition-b.json"


def taken(path: Path, partition: str | None) -> str:
    with pytest.raises(SteeringTaken) as found:
        claim(path, "steerer", partition)
    return str(found.value)


def steerer(path: Path, partition: str | None) -> Claim:
    found = claim(path, "steerer", partition)
    found.share()
    return found


def test_partitions_are_claimed_one_by_one_or_all_together(tmp_path: Path) -> None:
    whole, a, b = paths(tmp_path)
    first = steerer(a, "a")
    second = steerer(b, "b")
    assert "steerer of partition a, pid " in taken(a, "a")
    assert "partition b" not in taken(a, "a")
    said = taken(whole, None)
    assert "partition a" in said
    assert "partition b" in said
    first.release()
    assert holder_of(a) is None
    assert holder_of(b) == second.holder
    assert "partition b" in taken(whole, None)
    second.release()
    alone = steerer(whole, None)
    assert "steerer of all partitions" in taken(b, "b")
    alone.release()
    steerer(b, "b").release()


def test_a_process_that_is_killed_lets_go(tmp_path: Path) -> None:
    whole, _, _ = paths(tmp_path)
    code = (
        "import sys, time; from pathlib import Path; from stretto.engines.slurm.steer.claims import claim; "
        "found = claim(Path(sys.argv[1]), 'steerer', None); print('held', flush=True); time.sleep(600)"
    )
    process = subprocess.Popen([sys.executable, "-c", code, str(whole)], stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"
        assert f"pid {process.pid} on " in taken(whole, None)
    finally:
        process.kill()
        process.communicate()
    steerer(whole, None).release()


def test_a_guard_takes_back_what_its_own_steerer_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Here another steerer has the store by now: there is no Slurm, so that an attempt would fail."""
    path = tmp_path / "all.json"
    LabelStore(path, conf="/absent/slurm.conf", jobs={1: Label(5, 0, [5])}, owner="the next one").write()
    with open("/dev/null") as nothing:
        monkeypatch.setattr(sys, "stdin", nothing)
        watch(path, "somebody who was killed")
    assert LabelStore.read(path).jobs == {1: Label(5, 0, [5])}


def test_books_have_their_places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STRETTO_HOME", str(tmp_path))
    places = [
        label_path(None, None, None),
        label_path("/etc/slurm.conf", None, None),
        label_path(None, RestPlace("https://slurm.example"), None),
        label_path(None, None, "a"),
        label_path(None, None, "all"),
        label_path(None, None, "../b"),
    ]
    assert len(set(places)) == len(places)
    assert all(path.parent.parent == tmp_path / "steer-slurm" for path in places)
    for path in places:
        LabelStore(path).write()
    assert set(label_files()) == set(places)
    assert set(label_files("a")) == {*places[:3], places[3]}
    (tmp_path / "steer-slurm" / "partition-a.off").touch()
    assert any(path.exists() for path in switches_of("a"))
    assert not any(path.exists() for path in switches_of("b"))
    assert any(path.exists() for path in switches_of(None))  # whoever steers all would steer a, too


def test_what_sprio_prints() -> None:
    text = (
        "JOBID|SITE|PRIORITY\n"
        "2|555|1555|1000|0|0|0|0|0|0|\n"
        "4|0|5000|0|0|0|0|0|0|0|\n"
        "7|0|1|0|0|0|0|0|0|0|cpu=0\n"
        "9|0|12|0|0|0|0|0|0|0|cpu=12\n"
    )
    found = parse_factors(text)
    assert found == {2: Factors(555), 4: Factors(None, is_set=True), 7: Factors(0), 9: Factors(0)}


def test_site_factors_stay_within_what_slurm_takes() -> None:
    assert [clamped(value) for value in (-(2**40), -5, 2**31, 2**30)] == [-2147483645, -5, 2147483645, 2**30]
