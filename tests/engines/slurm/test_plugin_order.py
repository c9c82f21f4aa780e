"""Strategies of other distributions put live queues in order, or are refused in plain words."""

from __future__ import annotations

from pathlib import Path

import pytest

from stretto.cli.main import main
from stretto.engines.slurm.client.client import SlurmClient
from stretto.engines.slurm.testbed.testbed import Testbed
from stretto.errors import InvalidInput
from stretto.queues.strategies import member_code

from test_online_orders import NUM_PROCS, make_view  # isort: skip

MODULE = """
import numpy as np

class Widest:
    summary = "the widest first"
    def key(self, jobs):
        return -jobs.num_procs.astype(float)

class Broken:
    summary = "fails"
    def key(self, jobs):
        raise KeyError("nothing here")

class Short:
    summary = "answers with too few"
    def key(self, jobs):
        return np.zeros(1)

WIDEST, BROKEN, SHORT, NOTHING = Widest(), Broken(), Short(), object()
"""


@pytest.fixture(autouse=True)
def plugin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A distribution as pip would have installed it."""
    (tmp_path / "steer_plugin_of_tests.py").write_text(MODULE)
    info = tmp_path / "steer_plugin_of_tests-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: steer-plugin-of-tests\nVersion: 1.0\n")
    names = ("widest", "broken", "short", "nothing")
    rows = "".join(f"my-{name} = steer_plugin_of_tests:{name.upper()}\n" for name in names)
    (info / "entry_points.txt").write_text(f"[stretto.strategies]\n{rows}")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setenv("STRETTO_HOME", str(tmp_path / "home"))


def test_the_key_of_a_plugin_is_the_order() -> None:
    from stretto.api.steer import make_order

    view = make_view(5)
    found = make_order("my-widest", 1.0).decide(view)
    waiting = view.waiting.tolist()
    expected = sorted(waiting, key=lambda job: (view.procs[job] > NUM_PROCS, -view.procs[job], job))
    assert (list(found.order), found.chosen) == (expected, "my-widest")


def test_the_command_takes_it(bed: Testbed, client: SlurmClient, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["steer", "slurm", "--conf", str(bed.conf), "--once", "--budget", "60s", "--strategy"]
    assert main([*words, "my-widest"]) == 0
    assert "my-widest: " in capsys.readouterr().out
    for name, reason in (
        ("my-broken", "the plugin's key failed: KeyError"),
        ("my-short", "one per job"),
        ("my-nothing", "no key(jobs)"),
        ("my-widest-believed", "comes from a plugin"),
    ):
        assert main([*words, name]) == 2
        (line,) = capsys.readouterr().err.splitlines()
        assert reason in line


def test_portfolios_refuse_it() -> None:
    with pytest.raises(InvalidInput, match="comes from a plugin"):
        member_code("my-widest")
