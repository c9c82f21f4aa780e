"""Same seed, same result: in another process, with other hashes of strings, to the last bit."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest
import same_seed

from stretto.catalog import PLANNERS, TRAINERS

_WHAT = [f"{what} of {name}" for name in PLANNERS for what in ("plan", "run")]
_WHAT += [f"checkpoint of {name}" for name in TRAINERS]
_WHAT += ["training of doppler", "training of mars", "training of symphony"]


@pytest.fixture(scope="module")
def twins(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, str]]:
    """What two processes came to."""
    pytest.importorskip("optax")
    found = []
    for number in ("1", "2"):
        folder = tmp_path_factory.mktemp(f"twin{number}")
        words = [sys.executable, same_seed.__file__, str(folder)]
        done = subprocess.run(words, stdout=subprocess.PIPE, check=True, env={**os.environ, "PYTHONHASHSEED": number})
        found.append(json.loads(done.stdout))
    return found


@pytest.mark.parametrize("what", _WHAT)
def test_two_processes_agree(twins: list[dict[str, str]], what: str) -> None:
    assert twins[0][what] == twins[1][what]


def test_the_digests_tell_things_apart(twins: list[dict[str, str]]) -> None:
    plans = [value for what, value in twins[0].items() if what.startswith("plan of")]
    assert len(set(plans)) > len(plans) / 2
