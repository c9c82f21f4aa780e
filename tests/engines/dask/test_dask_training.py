"""Streams that Dask's workers play teach what they teach here, and what is wrong with an address is said."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import numpy as np
import pytest

from stretto.engines.dask.farm import DaskFarm, farm_at
from stretto.errors import EngineFailure
from stretto.racks.symphony.cases import case
from stretto.racks.symphony.network import fresh_weights, load_weights
from stretto.racks.symphony.settings import TRAINING
from stretto.racks.symphony.sources import Stream, Threads, Workers

STREAMS = [Stream(2, 11), Stream(0, 12), Stream(2, 13), Stream(1, 14), Stream(3, 15)]


def trained(*words: str) -> dict[str, Any]:
    command = [sys.executable, "-m", "stretto.cli.main", "train", "symphony", "two-nics", "--output", "json", *words]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    found: dict[str, Any] = json.loads(ran.stdout)
    return found


def test_lessons_do_not_depend_on_who_plays(processes: tuple[Any, Any]) -> None:
    world, weights = case("two-nics").world(seed=3, num_instances=4), fresh_weights(0)
    here = Threads(world).lessons(weights, STREAMS, TRAINING)
    assert len({mean_s for _, mean_s in here}) == len(STREAMS)
    sources = [
        Threads(world, num_threads=3),
        Workers(DaskFarm(processes[1]), case("two-nics"), seed=3, num_instances=4),
    ]
    for source in sources:
        for _ in range(2):  # the second time with a player that has been used
            found = source.lessons(weights, STREAMS, TRAINING)
            assert [mean_s for _, mean_s in found] == [mean_s for _, mean_s in here]
            for (one, _), (other, _) in zip(found, here, strict=True):
                np.testing.assert_array_equal(one.inputs, other.inputs)
                np.testing.assert_array_equal(one.cost, other.cost)


def test_training_on_workers_gives_the_same_weights(processes: tuple[Any, Any], tmp_path: Any) -> None:
    cluster, _ = processes
    here, there = tmp_path / "here.npz", tmp_path / "there.npz"
    trained("--episodes", "2", "--save", str(here))
    trained("--episodes", "2", "--save", str(there), "--dask", cluster.scheduler_address)
    for one, other in zip(load_weights(here)[0], load_weights(there)[0], strict=True):
        np.testing.assert_array_equal(one, other)


def test_a_scheduler_that_does_not_answer_is_named() -> None:
    with (
        pytest.raises(EngineFailure, match=r"no Dask scheduler answers at 'tcp://127\.0\.0\.1:1'"),
        farm_at("tcp://127.0.0.1:1"),
    ):
        pass
