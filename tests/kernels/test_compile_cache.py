"""Compiled kernels are found again after a change elsewhere, and never when a callee changed."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from stretto.kernels import compile as kernel_compile
from stretto.kernels.heap import __file__ as heap_file
from stretto.kernels.records import IS_PLAIN

KERNELS = Path(heap_file).parent


@pytest.fixture
def sources(tmp_path: Path) -> Path:
    (tmp_path / "low.py").write_text("A = 1\n")
    (tmp_path / "middle.py").write_text("from stretto.kernels.low import (\n    A,\n)\n")
    (tmp_path / "high.py").write_text("from stretto.kernels import middle as m, low\n")
    (tmp_path / "apart.py").write_text("B = 2\n")
    return tmp_path


def digests(folder: Path) -> dict[str, str]:
    kernel_compile.closure_digest.cache_clear()
    return {name: kernel_compile.closure_digest(name, folder) for name in ("low", "middle", "high", "apart")}


def test_a_change_reaches_all_callers_and_nobody_else(sources: Path) -> None:
    before = digests(sources)
    (sources / "low.py").write_text("A = 3\n")
    after = digests(sources)
    assert {name for name in before if before[name] != after[name]} == {"low", "middle", "high"}


def test_equal_sources_elsewhere_share_the_code(sources: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    other = tmp_path_factory.mktemp("clone")
    for path in sources.glob("*.py"):
        (other / path.name).write_bytes(path.read_bytes())
    assert digests(sources) == digests(other)


def test_imports_are_seen_in_every_form() -> None:
    source = "from stretto.kernels import a as x, b\nfrom stretto.kernels.c import (\n    d,\n)\nimport numpy\n"
    assert kernel_compile.imported_kernels(source) == {"a", "b", "c"}


@pytest.mark.skipif(IS_PLAIN, reason="nothing is compiled without the JIT")
def test_numba_keeps_kernels_where_we_say() -> None:
    from stretto.kernels.decode import decode

    assert decode._cache.cache_path == str(kernel_compile.cache_folder("decode"))


def test_every_kernel_takes_njit_from_the_compile_module() -> None:
    taken = re.compile(r"^from numba import .*\bn?jit\b|^import numba\b|\bnumba\.n?jit\b", re.MULTILINE)
    direct = [p.name for p in KERNELS.glob("*.py") if p.name != "compile.py" and taken.search(p.read_text())]
    assert direct == []


def test_old_versions_are_forgotten(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    for number in range(9):
        (tmp_path / f"heap-{number:016x}").mkdir()
    (tmp_path / "heap_other-0123456789abcdef").mkdir()
    kernel_compile.cache_folder.cache_clear()
    kernel_compile.cache_folder("heap")
    kernel_compile.cache_folder.cache_clear()
    left = [path.name for path in tmp_path.glob("heap-*")]
    assert len(left) == 6
    assert f"heap-{kernel_compile.closure_digest('heap')}" in left
    assert (tmp_path / "heap_other-0123456789abcdef").exists()
