"""Every kernel as plain Python against its compiled self; an index out of bounds, silent there, is an error here."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import plain_cases
import pytest

pytest.importorskip("optax")
pytest.importorskip("gymnasium")


def run_cases(folder: Path, *, plain: bool) -> dict[str, Any]:
    """Return what the cases come to in a process of their own."""
    target = folder / f"{plain}.json"
    tests = Path(plain_cases.__file__).parent.parent
    more = {
        "PYTHONPATH": f"{tests}{os.pathsep}{tests.parent}",
        "OMP_NUM_THREADS": "1",
        "NUMBA_DISABLE_JIT": "1" if plain else "0",
    }
    words = [sys.executable, "-W", "ignore", plain_cases.__file__, str(target)]
    subprocess.run(words, check=True, env={**os.environ, **more})
    found: dict[str, Any] = json.loads(target.read_text())
    return found


@pytest.fixture(scope="module")
def twins(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, Any], dict[str, Any]]:
    folder = tmp_path_factory.mktemp("plain")
    return run_cases(folder, plain=False), run_cases(folder, plain=True)


def test_plain_and_compiled_kernels_agree(twins: tuple[dict[str, Any], dict[str, Any]]) -> None:
    compiled, plain = (twin["results"] for twin in twins)
    assert compiled.keys() == plain.keys()
    different = [name for name in compiled if not is_same(compiled[name], plain[name])]
    assert not different


def is_same(one: list[Any], other: list[Any]) -> bool:
    """Compare results; functions such as exp may differ in the last bits between libraries."""
    if len(one) != len(other):
        return False
    words = [(a, b) for a, b in zip(one, other) if isinstance(a, str) or a is None]
    numbers = [(a, b) for a, b in zip(one, other) if not (isinstance(a, str) or a is None)]
    return all(a == b for a, b in words) and np.allclose(
        [a for a, _ in numbers], [b for _, b in numbers], rtol=1e-5, atol=1e-5, equal_nan=True
    )


def test_every_kernel_was_run(twins: tuple[dict[str, Any], dict[str, Any]]) -> None:
    missed = plain_cases.defined_kernels() - set(twins[1]["seen"])
    assert sorted(missed) == []
