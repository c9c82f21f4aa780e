"""A training whose process is killed again and again ends as one that was left alone, bit for bit."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import crash_training_run as crash_run
import pytest

_CASES = [
    ("pretend", 5),
    pytest.param("doppler", 3, marks=pytest.mark.long, id="doppler-3"),
    pytest.param("pretend", 100, marks=pytest.mark.long, id="pretend-100"),
    pytest.param("doppler", 100, marks=pytest.mark.long, id="doppler-100"),
]


@pytest.mark.parametrize(("kind", "num_kills"), _CASES)
def test_a_killed_training_ends_as_one_that_was_left_alone(tmp_path: Path, kind: str, num_kills: int) -> None:
    if kind == "doppler":
        pytest.importorskip("optax")
    (tmp_path / "runs").mkdir()
    words = [sys.executable, crash_run.__file__, str(tmp_path / "runs"), kind, str(num_kills), "5"]
    # Compiled code is kept between the parts: what is killed here is the training, not the compiler.
    cache = {"JAX_COMPILATION_CACHE_DIR": str(tmp_path / "xla"), "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0"}
    done = subprocess.run(words, stdout=subprocess.PIPE, check=True, env={**os.environ, **cache})
    found = json.loads(done.stdout)
    whole, trainings = found["whole"], found["trainings"]
    assert sum(training["num_kills"] for training in trainings) >= num_kills
    for training in trainings:
        assert training["arrays"] == whole["arrays"], "weights, optimiser, history or best plan differ"
        assert training["meta"] == whole["meta"]
        assert training["episodes"] == sorted(set(training["episodes"])), "an episode was counted twice"
    strays = sum(training["strays"] for training in trainings)
    assert strays <= sum(training["num_kills"] for training in trainings)
    print(f"{kind}: {sum(t['num_kills'] for t in trainings)} kills in {len(trainings)} trainings, {strays} strays")
