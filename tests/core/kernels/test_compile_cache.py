"""Compiled kernels are found again after a change elsewhere, and never when a callee changed."""

from __future__ import annotations

import os
import pickle
import re
import shutil
from pathlib import Path

import pytest

from stretto.core.kernels import compile as kernel_compile
from stretto.core.kernels.heap import __file__ as heap_file
from stretto.core.kernels.records import IS_PLAIN

PACKAGE = Path(heap_file).parents[2]


@pytest.fixture
def sources(tmp_path: Path) -> Path:
    one, other = tmp_path / "one" / "kernels", tmp_path / "other" / "kernels"
    one.mkdir(parents=True)
    other.mkdir(parents=True)
    (one / "low.py").write_text("A = 1\n")
    (other / "middle.py").write_text("from stretto.one.kernels.low import (\n    A,\n)\n")
    (other / "high.py").write_text("from stretto.other.kernels import middle as m, low\n")
    (one / "apart.py").write_text("B = 2\n")
    return tmp_path


def digests(folder: Path) -> dict[str, str]:
    kernel_compile.closure_digest.cache_clear()
    names = ("one.kernels.low", "other.kernels.middle", "other.kernels.high", "one.kernels.apart")
    return {name.rpartition(".")[2]: kernel_compile.closure_digest(name, folder) for name in names}


def test_a_change_reaches_all_callers_and_nobody_else(sources: Path) -> None:
    before = digests(sources)
    (sources / "one" / "kernels" / "low.py").write_text("A = 3\n")
    after = digests(sources)
    assert {name for name in before if before[name] != after[name]} == {"low", "middle", "high"}


def test_equal_sources_elsewhere_share_the_code(sources: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    other = tmp_path_factory.mktemp("clone")
    shutil.copytree(sources, other, dirs_exist_ok=True)
    assert digests(sources) == digests(other)


def test_imports_are_seen_in_every_form() -> None:
    source = "from stretto.one.kernels import a as x, b\nfrom stretto.one.kernels.c import (\n    d,\n)\nimport numpy\n"
    source += "from stretto.core.csr import e\n"
    found = {"one.kernels", "one.kernels.a", "one.kernels.b", "one.kernels.c", "one.kernels.c.d"}
    assert kernel_compile.imported_kernels(source) == found


@pytest.mark.skipif(IS_PLAIN, reason="nothing is compiled without the JIT")
def test_numba_keeps_kernels_where_we_say() -> None:
    from stretto.graphs.kernels.search.decode import decode

    assert decode._cache.cache_path == str(kernel_compile.cache_folder("graphs.kernels.search.decode"))


def test_every_kernel_takes_njit_from_the_compile_module() -> None:
    taken = re.compile(r"^from numba import .*\bn?jit\b|^import numba\b|\bnumba\.n?jit\b", re.MULTILINE)
    direct = [p.name for p in PACKAGE.rglob("*.py") if p.name != "compile.py" and taken.search(p.read_text())]
    assert direct == []


def test_old_versions_are_forgotten(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    for number in range(9):
        (tmp_path / f"core.kernels.heap-{number:016x}").mkdir()
    (tmp_path / "core.kernels.heap_other-0123456789abcdef").mkdir()
    kernel_compile.cache_folder.cache_clear()
    kernel_compile.cache_folder("core.kernels.heap")
    kernel_compile.cache_folder.cache_clear()
    left = [path.name for path in tmp_path.glob("core.kernels.heap-*")]
    assert len(left) == 6
    assert f"core.kernels.heap-{kernel_compile.closure_digest('core.kernels.heap')}" in left
    assert (tmp_path / "core.kernels.heap_other-0123456789abcdef").exists()


def test_an_index_that_names_a_renamed_tuple_counts_as_empty(tmp_path: Path) -> None:
    from numba.core.caching import IndexDataCacheFile

    cache = IndexDataCacheFile(str(tmp_path), "kernel", "stamp")
    gone = b"cstretto.core.kernels.compile\nNoSuchTuple\n."  # pickled by reference
    Path(cache._index_path).write_bytes(pickle.dumps(cache._version) + gone)
    assert cache._load_index() == {}


def test_kernels_have_a_folder_and_other_functions_have_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "cache"))
    kernel_compile.cache_folder.cache_clear()
    find = kernel_compile.KernelLocator.from_function
    found = find(digests, heap_file)
    assert found is not None
    folder = tmp_path / "cache" / f"core.kernels.heap-{kernel_compile.closure_digest('core.kernels.heap')}"
    assert (found.get_cache_path(), found.get_source_stamp()) == (str(folder), folder.name)
    assert found.get_disambiguator() == str(digests.__code__.co_firstlineno)
    assert folder.is_dir()
    assert find(digests, str(PACKAGE / "core" / "csr.py")) is None
    assert find(digests, str(tmp_path / "stretto" / "kernels" / "own.py")) is None
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(Path(heap_file) / "no folder"))
    kernel_compile.cache_folder.cache_clear()
    assert find(digests, heap_file) is None
    kernel_compile.cache_folder.cache_clear()
    assert kernel_compile.caching.CacheImpl._locator_classes[0] is kernel_compile.KernelLocator


@pytest.mark.parametrize(
    ("variables", "root"),
    [
        ({"NUMBA_CACHE_DIR": "/n", "XDG_CACHE_HOME": "/x"}, "/n"),
        ({"XDG_CACHE_HOME": "/x"}, "/x/stretto/kernels"),
        ({"NUMBA_CACHE_DIR": "", "XDG_CACHE_HOME": ""}, "/h/.cache/stretto/kernels"),
        ({}, "/h/.cache/stretto/kernels"),
    ],
)
def test_the_cache_is_where_the_environment_says(
    variables: dict[str, str], root: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("NUMBA_CACHE_DIR", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    for name, value in {"HOME": "/h", **variables}.items():
        monkeypatch.setenv(name, value)
    assert kernel_compile.cache_root() == Path(root)


@pytest.mark.parametrize("is_chosen", [True, False])
def test_only_a_cache_of_our_own_is_closed_to_others(
    is_chosen: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = tmp_path / "stretto" / "kernels"
    root.mkdir(parents=True)
    root.chmod(0o755)
    monkeypatch.delenv("NUMBA_CACHE_DIR", raising=False)
    monkeypatch.setenv(*(("NUMBA_CACHE_DIR", str(root)) if is_chosen else ("XDG_CACHE_HOME", str(tmp_path))))
    kernel_compile.cache_folder.cache_clear()
    folder = kernel_compile.cache_folder("core.kernels.heap")
    kernel_compile.cache_folder.cache_clear()
    assert folder.parent == root
    assert root.stat().st_mode & 0o777 == (0o755 if is_chosen else 0o700)


def test_the_newest_versions_are_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    own = tmp_path / f"core.kernels.heap-{kernel_compile.closure_digest('core.kernels.heap')}"
    for number in range(8):
        old = tmp_path / f"core.kernels.heap-{number:016x}"
        old.mkdir()
        os.utime(old, (1000 + number, 1000 + number))
    own.mkdir()
    os.utime(own, (1, 1))
    kernel_compile.cache_folder.cache_clear()
    assert kernel_compile.cache_folder("core.kernels.heap") == own
    kernel_compile.cache_folder.cache_clear()
    assert own.stat().st_mtime > 1_000_000  # it counts as used now
    left = {path.name.rpartition("-")[2] for path in tmp_path.iterdir() if path != own}
    assert left == {f"{number:016x}" for number in range(3, 8)}


def test_the_digest_depends_on_python_numba_and_every_source(sources: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = digests(sources)
    assert len(set(before.values())) == 4
    assert {len(digest) for digest in before.values()} == {16}
    monkeypatch.setattr(kernel_compile.numba, "__version__", "0")
    other = digests(sources)
    assert all(before[name] != other[name] for name in before)
    kernel_compile.closure_digest.cache_clear()


def test_parameters_count_as_sources_of_kernels() -> None:
    source = "from stretto.racks.parameters import A\nfrom stretto.racks.kernel import b\n"
    assert kernel_compile.imported_kernels(source) == {"racks.parameters", "racks.parameters.A"}
