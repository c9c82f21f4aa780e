"""Finding formats, archives, members, and writing files whole."""

from __future__ import annotations

import gzip
import io
import os
import tarfile
import zipfile
from pathlib import Path

import pytest
from format_samples import DAX, DOPPLER, DOT, STG, assert_same, document, wfformat

from stretto.catalog import FORMATS
from stretto.core.cluster import Cluster
from stretto.core.graph import TaskGraph
from stretto.core.workload import Workload
from stretto.errors import InvalidInput, UnknownName
from stretto.files import archive
from stretto.files import load as load_module
from stretto.files.load import load, load_cluster, save
from stretto.registry import resolve

SAMPLES = {"dax": DAX, "stg": STG, "doppler": DOPPLER, "dot": DOT, "wfformat": document(wfformat()).data}


def _graph() -> TaskGraph:
    return TaskGraph.from_edges([1.0, 2.0, 3.0], [0, 0, 1], [1, 2, 2], [5.0, 6.0, 7.0], name="three")


@pytest.mark.parametrize("name", SAMPLES)
@pytest.mark.parametrize("packed", [False, True])
def test_the_content_says_the_format(name: str, packed: bool, tmp_path: Path) -> None:
    path = tmp_path / "no-ending-at-all"
    path.write_bytes(gzip.compress(SAMPLES[name]) if packed else SAMPLES[name])
    graph = load(path)
    assert isinstance(graph, TaskGraph)
    expected = resolve(FORMATS[name]).read(document(SAMPLES[name], "no-ending-at-all"))
    assert_same(graph, expected)


@pytest.mark.parametrize("name", SAMPLES)
def test_exactly_one_format_fits(name: str) -> None:
    """A sample that two formats claim would depend on the order of the catalog."""
    claims = [key for key, target in FORMATS.items() if resolve(target).matches(document(SAMPLES[name]))]
    assert claims == [name]


@pytest.mark.parametrize("ending", [".json", ".stretto.json.gz", ".json.gz"])
def test_saved_graphs_come_back(ending: str, tmp_path: Path) -> None:
    path = tmp_path / f"three{ending}"
    assert save(_graph(), path) == ()
    read = load(path)
    assert isinstance(read, TaskGraph)
    assert_same(read, _graph())
    assert [file.name for file in tmp_path.iterdir()] == [path.name]
    assert path.read_bytes().startswith(b"\x1f\x8b") == ending.endswith("gz")


@pytest.mark.parametrize(("ending", "format"), [("wf.json", "wfformat"), ("dot", "dot"), ("stg", "stg"), ("gv", "dot")])
def test_the_ending_chooses_the_writer(ending: str, format: str, tmp_path: Path) -> None:
    path = tmp_path / f"x.{ending}"
    lost = save(_graph(), path)
    assert resolve(FORMATS[format]).matches(document(path.read_bytes()))
    assert lost == (("data sizes",) if format == "stg" else ())


def test_saving_is_all_or_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "x.json"
    save(_graph(), path)
    before = path.read_bytes()

    def fail(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", fail)
    with pytest.raises(InvalidInput, match="No space left"):
        save(TaskGraph.from_edges([1.0], [], []), path)
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


def test_saving_errors(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match=r"native \(\.stretto\.json, \.json\)"):
        save(_graph(), tmp_path / "x.unknown")
    with pytest.raises(InvalidInput, match="can only be read"):
        save(_graph(), tmp_path / "x.dax", format="dax")
    with pytest.raises(UnknownName, match="did you mean native"):
        save(_graph(), tmp_path / "x", format="natve")
    with pytest.raises(InvalidInput, match="No such file"):
        save(_graph(), tmp_path / "no" / "x.json")
    with pytest.raises(InvalidInput, match="workload"):
        save(Workload.of([_graph()]), tmp_path / "x.dot")


def _tar(path: Path, members: dict[str, bytes], mode: str = "w:gz") -> Path:
    with tarfile.open(path, mode) as out:  # type: ignore[call-overload]
        for name, data in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(data)
            out.addfile(info, io.BytesIO(data))
    return path


def _zip(path: Path, members: dict[str, bytes]) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as out:
        for name, data in members.items():
            out.writestr(name, data)
    return path


MEMBERS = {"d/a.stg": STG, "d/b.dot.gz": gzip.compress(DOT), "optima.csv": b"a,1\n", "e/c.stg": STG}


@pytest.mark.parametrize("kind", ["w", "w:gz", "w:bz2", "w:xz", "zip"])
def test_archives_hold_workloads(kind: str, tmp_path: Path) -> None:
    path = tmp_path / "many"
    _zip(path, MEMBERS) if kind == "zip" else _tar(path, MEMBERS, kind)
    work = load(path)
    assert isinstance(work, Workload)
    assert [job.graph.name for job in work] == ["d/a.stg", "d/b.dot.gz", "e/c.stg"]
    assert work.name == "many"
    for member in ("d/b.dot.gz", "b.dot.gz", "1"):
        graph = load(f"{path}#{member}")
        assert isinstance(graph, TaskGraph)
        assert graph.name == "d/b.dot.gz"
    assert load(f"{path}#c").name == "e/c.stg"


def test_a_member_that_two_paths_share_must_be_named_in_full(tmp_path: Path) -> None:
    path = _zip(tmp_path / "z.zip", {"a/x.stg": STG, "b/x.stg": STG})
    with pytest.raises(InvalidInput, match=r"a/x\.stg or b/x\.stg"):
        load(f"{path}#x.stg")


def test_workloads_inside_archives_are_flattened(tmp_path: Path) -> None:
    inner = resolve(FORMATS["native"]).write(Workload.of([_graph(), _graph()], arrivals_s=[0, 4.5]))
    path = _zip(tmp_path / "z.zip", {"w.json": inner, "a.stg": STG})
    work = load(path)
    assert isinstance(work, Workload)
    assert [(job.graph.name, job.arrival_s) for job in work] == [
        ("w.json#three", 0.0),
        ("w.json#three", 4.5),
        ("a.stg", 0.0),
    ]
    assert load(f"{path}#w.json#three").name == "w.json#three"


def test_errors_inside_an_archive_name_the_member(tmp_path: Path) -> None:
    path = _zip(tmp_path / "z.zip", {"good.stg": STG, "bad.stg": STG.replace(b"   5   1", b"  -5   1")})
    with pytest.raises(InvalidInput) as caught:
        load(path)
    assert (caught.value.source, caught.value.line) == (f"{path}#bad.stg", 3)


def test_archives_without_graphs(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="no known graph format matches any of the 2 members"):
        load(_zip(tmp_path / "z.zip", {"a.csv": b"1,2\n", "b.txt": b"hello\n"}))
    with pytest.raises(InvalidInput, match="any of the 0 members"):
        load(_zip(tmp_path / "y.zip", {}))
    with pytest.raises(UnknownName, match=r"did you mean a\.stg"):
        load(f"{_zip(tmp_path / 'x.zip', {'a.stg': STG})}#b.stg")


def test_bombs_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archive, "FREE_BYTES", 1 << 16)
    path = _zip(tmp_path / "bomb.zip", {f"{i}": b"\0" * (1 << 22) for i in range(4)})
    assert path.stat().st_size < 1 << 16
    with pytest.raises(InvalidInput, match="bomb"):
        load(path)
    path = _tar(tmp_path / "bomb.txz", {"x": b"\0" * (1 << 25)}, "w:xz")
    with pytest.raises(InvalidInput, match="bomb"):
        load(path)
    monkeypatch.setattr(archive, "MAX_MEMBERS", 3)
    with pytest.raises(InvalidInput, match="more than 3 members"):
        load(_zip(tmp_path / "many.zip", {str(i): b"" for i in range(5)}))


def test_members_of_workload_files(tmp_path: Path) -> None:
    path = tmp_path / "w.json"
    other = TaskGraph.from_edges([9.0], [], [], name="other")
    save(Workload.of([_graph(), other]), path)
    assert load(f"{path}#other").num_tasks == 1
    assert load(f"{path}#0").name == "three"
    with pytest.raises(UnknownName, match="did you mean other"):
        load(f"{path}#othr")
    single = tmp_path / "one.stg"
    single.write_bytes(STG)
    assert load(f"{single}#one").num_tasks == 5
    with pytest.raises(InvalidInput, match="there is no 'two'"):
        load(f"{single}#two")


def test_a_real_hash_in_a_name_wins(tmp_path: Path) -> None:
    path = tmp_path / "a#b.stg"
    path.write_bytes(STG)
    assert load(path).name == "b"  # what stands after the last hash is the name within


def test_a_format_can_be_forced(tmp_path: Path) -> None:
    path = tmp_path / "x"
    path.write_bytes(STG)
    assert load(path, format="stg").num_tasks == 5
    with pytest.raises(InvalidInput, match="digraph"):
        load(path, format="dot")
    with pytest.raises(UnknownName):
        load(path, format="sgt")


def test_real_archives(data_dir: Path) -> None:
    stg = data_dir / "taskgraphs" / "stg-50.tar.gz"
    assert load(f"{stg}#50/rand0000.stg").num_tasks == 52
    assert load(f"{stg}#rand0179.stg").name == "50/rand0179.stg"
    projects = load(data_dir / "taskgraphs" / "psplib-j30.sm.zip")
    assert isinstance(projects, Workload)
    assert len(projects) == 480


def test_clusters_by_shorthand_and_by_file(tmp_path: Path) -> None:
    assert load_cluster("cpu:2,gpu:1x5@16GB/s").num_devices == 3
    path = tmp_path / "c.toml"
    path.write_text('[[device]]\nkind = "gpu"\ncount = 2\n')
    assert load_cluster(path).num_devices == load_cluster(str(path)).num_devices == 2
    path = tmp_path / "c.json"
    path.write_text('{"device": [{"kind": "gpu", "count": 3}]}')
    cluster = load_cluster(path)
    assert cluster.num_devices == 3
    assert load_cluster(cluster) is cluster
    with pytest.raises(InvalidInput, match="No such file"):
        load_cluster("missing.toml")
    with pytest.raises(InvalidInput, match="KIND:COUNT"):
        load_cluster("what is this")
    assert isinstance(cluster, Cluster)


def test_the_size_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "x.stg"
    path.write_bytes(STG)
    monkeypatch.setattr(load_module, "MAX_GRAPH_BYTES", 10)
    with pytest.raises(InvalidInput, match="more than the limit of 10"):
        load(path)
