"""Checkpoints: every bit comes back, and anything that is not what was written is refused."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
import textwrap
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from stretto.errors import StrettoError
from stretto.files import checkpoint
from stretto.files.checkpoint import InvalidCheckpoint, load, save

ARRAYS = {
    "params/encoder/0": np.arange(12, dtype=np.float32).reshape(3, 4),
    "rng": np.array([2**64 - 1, 0, 1], dtype=np.uint64),
    "step": np.array(7, dtype=np.int64),
    "nothing": np.zeros((0, 3)),
}
META = {"graph": "layer", "seed": 3, "stages": [1, 2], "nested": {"best": 12.5, "done": None}}

dtypes = st.sampled_from([np.dtype(name) for name in ("f4", "f8", "f2", "i1", "i4", "i8", "u8", "?", "c16", ">i4")])
values = hnp.arrays(dtypes, hnp.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=4))
names = st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1, max_size=12)
jsons = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(codec="utf-8"), max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=8,
)  # fmt: skip


def bits(array: np.ndarray) -> tuple[str, tuple[int, ...], bytes]:
    return array.dtype.str, array.shape, array.tobytes()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    target = tmp_path / "state.npz"
    save(target, ARRAYS, META)
    return target


@settings(max_examples=60, deadline=None)
@given(arrays=st.dictionaries(names, values, max_size=4), meta=st.dictionaries(st.text(max_size=4), jsons, max_size=3))
def test_every_bit_comes_back(arrays: dict[str, np.ndarray], meta: dict[str, Any], tmp_path_factory: Any) -> None:
    target = tmp_path_factory.mktemp("c") / "state.npz"
    save(target, arrays, meta)
    found, about = load(target)
    assert {name: bits(array) for name, array in found.items()} == {name: bits(array) for name, array in arrays.items()}
    assert about == meta


def test_special_floats_and_random_states_survive(tmp_path: Path) -> None:
    odd = np.array([np.nan, -np.nan, -0.0, np.inf, 5e-324])
    odd.view(np.uint64)[0] |= 0x1234  # a NaN with a payload
    state = np.random.default_rng(1).bit_generator.state["state"]
    words = np.array([state["state"] >> 64, state["state"] & (2**64 - 1)], dtype=np.uint64)
    save(tmp_path / "s.npz", {"odd": odd, "words": words, "scalar": np.uint64(2**63)}, {})
    found, _ = load(tmp_path / "s.npz")
    assert found["odd"].tobytes() == odd.tobytes()
    assert found["words"].tolist() == words.tolist()
    assert found["scalar"].shape == ()
    assert found["scalar"] == 2**63


def test_the_order_in_memory_does_not_matter(tmp_path: Path) -> None:
    save(tmp_path / "a.npz", {"x": np.asfortranarray(np.arange(6.0).reshape(2, 3)), "y": np.arange(10)[::2]}, {})
    found, _ = load(tmp_path / "a.npz")
    assert found["x"].tolist() == [[0, 1, 2], [3, 4, 5]]
    assert found["y"].tolist() == [0, 2, 4, 6, 8]
    found["y"][0] = 1  # what comes back can be written to


def test_the_same_state_makes_the_same_file(path: Path, tmp_path: Path) -> None:
    save(tmp_path / "again.npz", ARRAYS, META)
    assert (tmp_path / "again.npz").read_bytes() == path.read_bytes()


def test_numpy_reads_the_arrays_too(path: Path) -> None:
    with np.load(path, allow_pickle=False) as archive:
        assert archive["rng"].tolist() == ARRAYS["rng"].tolist()


def test_truncated_files_are_refused(path: Path) -> None:
    whole = path.read_bytes()
    for length in (0, 1, 10, len(whole) // 2, len(whole) - 1):
        path.write_bytes(whole[:length])
        with pytest.raises(InvalidCheckpoint, match=r"state\.npz"):
            load(path)


def test_any_flipped_byte_is_noticed_or_harmless(path: Path) -> None:
    whole = path.read_bytes()
    expected = {name: bits(array) for name, array in ARRAYS.items()}
    refused = 0
    for place in range(len(whole)):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 0x55]) + whole[place + 1 :])
        try:
            found, meta = load(path)
        except InvalidCheckpoint:
            refused += 1
            continue
        # Dates and flags of the zip carry nothing of ours.
        assert {name: bits(array) for name, array in found.items()} == expected
        assert meta == META
    assert refused > len(whole) / 2


def _rewrite(path: Path, change: Any) -> None:
    """Change the members of a checkpoint, with good CRCs, as somebody with a zip tool could."""
    with zipfile.ZipFile(path) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    change(members)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in members.items():
            archive.writestr(name, data)


def _manifest(members: dict[str, bytes], **fields: Any) -> None:
    manifest = json.loads(members["checkpoint.json"])
    for key, value in fields.items():
        if value is None:
            del manifest[key]
        else:
            manifest[key] = value
    members["checkpoint.json"] = json.dumps(manifest).encode()


def _npy(array: np.ndarray, **options: Any) -> bytes:
    stream = io.BytesIO()
    np.lib.format.write_array(stream, array, **options)
    return stream.getvalue()


OBJECTS = {"rng": {"dtype": "|O", "shape": [3]}}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda m: m.pop("checkpoint.json"), r"checkpoint\.json\]: missing"),
        (lambda m: m.update({"checkpoint.json": b"{"}), "not JSON"),
        (lambda m: m.update({"checkpoint.json": b"[" * 100_000}), "not JSON"),
        (lambda m: m.update({"checkpoint.json": b"[]"}), r"\[format\]"),
        (lambda m: _manifest(m, version=99), r"\[version\].*99"),
        (lambda m: _manifest(m, meta=None), r"\[meta\]"),
        (lambda m: _manifest(m, meta={"seed": 4}), r"\[sha256\]"),
        (lambda m: _manifest(m, sha256="0" * 64), r"\[sha256\]"),
        (lambda m: m.pop("rng.npy"), r"\[rng\]: the array is missing"),
        (lambda m: m.update({"more.npy": b""}), r"\[more\.npy\]"),
        (lambda m: m.update({"rng.npy": _npy(np.array([1, 2, 3], np.uint64))}), r"\[sha256\]"),
        (lambda m: m.update({"rng.npy": _npy(np.array([1, 2], np.uint64))}), r"\[rng\].*manifest"),
        (lambda m: m.update({"rng.npy": _npy(np.array([1, 2, 3], np.int64))}), r"\[rng\].*manifest"),
        (lambda m: m.update({"rng.npy": m["rng.npy"] + b"more"}), r"\[rng\]"),
        (lambda m: m.update({"rng.npy": b"no array"}), r"\[rng\]: not an array"),
        (lambda m: m.update({"rng.npy": _npy(np.array([None] * 3), allow_pickle=True)}), r"\[rng\]"),
        (lambda m: _manifest(m, arrays=OBJECTS | {}), r"member|plain number"),
        (lambda m: _manifest(m, arrays={"rng": {"dtype": "<f8", "shape": [-1]}}), r"member|impossible"),
    ],
)  # fmt: skip
def test_wrong_content_is_refused_with_its_field(path: Path, change: Any, message: str) -> None:
    _rewrite(path, change)
    with pytest.raises(InvalidCheckpoint, match=message) as caught:
        load(path)
    assert isinstance(caught.value, StrettoError)
    assert str(path) in str(caught.value)


@pytest.mark.parametrize(
    ("about", "message"),
    [
        ({"dtype": "|O", "shape": [3]}, "plain number"),
        ({"dtype": "<U9", "shape": [3]}, "plain number"),
        ({"dtype": "nonsense", "shape": [3]}, "no type and shape"),
        ({"dtype": "<f8", "shape": [-3]}, "impossible"),
        ({"dtype": "<f8", "shape": [True]}, "impossible"),
        ({"dtype": "<f8"}, "no type and shape"),
        (7, "no type and shape"),
    ],
)
def test_impossible_manifests_are_refused(tmp_path: Path, about: Any, message: str) -> None:
    target = tmp_path / "one.npz"
    save(target, {"x": np.zeros(3)}, {})
    _rewrite(target, lambda members: _manifest(members, arrays={"x": about}))
    with pytest.raises(InvalidCheckpoint, match=message):
        load(target)


def test_pickled_arrays_are_refused_without_running_anything(tmp_path: Path) -> None:
    class Bomb:
        def __reduce__(self) -> Any:
            return os.mkdir, (str(tmp_path / "boom"),)

    target = tmp_path / "evil.npz"
    save(target, {"x": np.zeros(1)}, {})
    evil = np.empty(1, dtype=object)
    evil[0] = Bomb()

    def change(members: dict[str, bytes]) -> None:
        members["x.npy"] = _npy(evil, allow_pickle=True)
        _manifest(members, arrays={"x": {"dtype": "|O", "shape": [1]}})

    _rewrite(target, change)
    with pytest.raises(InvalidCheckpoint, match="plain number"):
        load(target)
    assert not (tmp_path / "boom").exists()


def test_zip_bombs_are_refused_before_they_are_unpacked(tmp_path: Path) -> None:
    target = tmp_path / "bomb.npz"
    save(target, {"x": np.zeros(4_000_000)}, {})  # 32 MB of zeros in a small file
    assert target.stat().st_size < 300_000
    with pytest.raises(InvalidCheckpoint, match=r"unpack to 32,000,\d+ bytes, more than the 1,000,000"):
        load(target, max_bytes=1_000_000)

    def grow(members: dict[str, bytes]) -> None:
        members["x.npy"] += bytes(50_000_000)

    _rewrite(target, grow)
    with pytest.raises(InvalidCheckpoint, match=r"x\.npy.*make sense"):
        load(target)


def test_other_ways_of_packing_are_refused(path: Path) -> None:
    with zipfile.ZipFile(path) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    with zipfile.ZipFile(path, "w", zipfile.ZIP_LZMA) as archive:
        for name, data in members.items():
            archive.writestr(name, data)
    with pytest.raises(InvalidCheckpoint, match="never use"):
        load(path)


@pytest.mark.parametrize(
    ("arrays", "meta", "message"),
    [
        ({"x": np.array([None])}, {}, r"\[x\].*plain number"),
        ({"x": np.array(["text"])}, {}, r"\[x\].*plain number"),
        ({"": np.zeros(1)}, {}, r"\[arrays\]"),
        ({}, {"x": float("inf")}, r"\[meta\]"),
        ({}, {"x": {1: 2}}, r"\[meta\].*text"),
        ({}, {"x": np.zeros(2)}, r"\[meta\]: not JSON"),
    ],
)
def test_what_cannot_come_back_is_not_written(tmp_path: Path, arrays: Any, meta: Any, message: str) -> None:
    with pytest.raises(InvalidCheckpoint, match=message):
        save(tmp_path / "x.npz", arrays, meta)
    assert list(tmp_path.iterdir()) == []


def test_missing_files_and_folders_are_named(tmp_path: Path) -> None:
    with pytest.raises(InvalidCheckpoint, match=r"gone\.npz: there is no such file"):
        load(tmp_path / "gone.npz")
    with pytest.raises(InvalidCheckpoint, match="cannot read"):
        load(tmp_path)
    with pytest.raises(InvalidCheckpoint, match="cannot write"):
        save(tmp_path / "no" / "folder.npz", {}, {})


def test_killed_before_the_rename_the_old_file_stands(path: Path) -> None:
    before = path.read_bytes()
    script = f"""
        import os, signal
        import numpy as np
        from stretto.files.checkpoint import save
        os.replace = lambda *_: os.kill(os.getpid(), signal.SIGKILL)
        save({str(path)!r}, {{"x": np.zeros(100)}}, {{}})
    """
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(script)], check=False)
    assert done.returncode == -9
    assert path.read_bytes() == before
    assert load(path)[1] == META


def test_a_failed_write_leaves_the_old_file_and_nothing_else(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    with pytest.raises(InvalidCheckpoint, match="No space left"):
        save(path, {"x": np.zeros(9)}, {})
    assert [file.name for file in path.parent.iterdir()] == ["state.npz"]
    assert load(path)[1] == META


def test_the_version_is_written(path: Path) -> None:
    with zipfile.ZipFile(path) as archive:
        manifest = json.loads(archive.read("checkpoint.json"))
    assert (manifest["format"], manifest["version"]) == (checkpoint.FORMAT, 1)
    assert manifest["arrays"]["step"] == {"dtype": "<i8", "shape": []}
