"""``stretto train symphony``: a report, a file, and what does not apply to a rack."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

pytest.importorskip("optax")


def _stretto(*words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "stretto.cli.main", *words]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_training_reports_and_writes_a_policy(tmp_path):
    path = tmp_path / "policy.npz"
    ran = _stretto("train", "symphony", "two-nics", "--episodes", "2", "--save", str(path), "--output", "json")
    assert ran.returncode == 0, ran.stderr
    document = json.loads(ran.stdout)
    assert document["iterations"] == 2
    assert {"symphony", "mct", "paragon", "srpt-belief"} <= set(document["mean_completion_s"])
    assert path.is_file()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("two-nix",), "did you mean two-nics"),
        (("two-nics", "--cluster", "gpu:2"), "does not apply to a training on a rack"),
        (("two-nics", "--budget", "0s"), "above 0"),
    ],
)
def test_mistakes_are_named(words, message):
    ran = _stretto("train", "symphony", *words)
    assert ran.returncode == 2
    assert message in ran.stderr
