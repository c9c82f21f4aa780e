"""A steering layer whose controller is away, or whose policy never answers, does no harm and can be stopped."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from stretto.cli.main import main
from stretto.engines.background import wait_until
from stretto.engines.slurm.client.client import SlurmClient, Submission, is_installed
from stretto.engines.slurm.steer.label_store import LabelStore
from stretto.engines.slurm.steer.steer import Steerer, SteerSettings, Step
from stretto.engines.slurm.testbed.conf import TestbedSpec
from stretto.engines.slurm.testbed.testbed import Testbed
from stretto.queues.live_order import StrategyOrder, warm_up
from stretto.runlog import RunLog

_HUNG = """
import sys, time
from pathlib import Path
from stretto.cli.main import main
from stretto.engines.slurm.steer.label_store import LabelStore
from stretto.engines.slurm.client.client import SlurmClient, Submission
from stretto.engines.slurm.client.client import Commands
from stretto.engines.slurm.steer.steer import Steerer, SteerSettings

class Hung:
    def decide(self, view):
        time.sleep(6000)

folder, conf = Path(sys.argv[1]), Path(sys.argv[2])
settings = SteerSettings(is_applied=True, interval_s=0.05, budget_s=0.1)
store = LabelStore(folder / "store.json", conf=str(conf))
layer = Steerer(SlurmClient(Commands(conf)), Hung(), store, folder / "off", settings)
reasons = []
layer.follow(lambda step: reasons.append(step.fallback), num_steps=3)
print(reasons)
"""


@pytest.fixture(scope="module")
def testbed() -> Iterator[Testbed]:
    if not is_installed():
        pytest.skip("Slurm is not installed: make slurm")
    with tempfile.TemporaryDirectory(prefix="slurm-", ignore_cleanup_errors=True) as folder:
        found = Testbed.up(Path(folder) / "bed", TestbedSpec(num_nodes=1, cpus_per_node=1))
        yield found
        assert found.down() == []


def test_a_policy_that_never_answers_does_not_keep_the_layer_alive(testbed: Testbed, tmp_path: Path) -> None:
    words = [sys.executable, "-c", _HUNG, str(tmp_path), str(testbed.conf)]
    done = subprocess.run(words, stdout=subprocess.PIPE, text=True, check=True, timeout=300.0)
    assert "no decision within 0.1 s" in done.stdout
    assert "not finished" in done.stdout


def test_a_controller_that_is_away_is_waited_for(testbed: Testbed, tmp_path: Path) -> None:
    order = StrategyOrder("sjf")
    warm_up(order)
    log = RunLog.open(tmp_path / "runs.db")
    run = log.start("steer", "away", {})
    settings = SteerSettings(is_applied=True, interval_s=0.1, budget_s=60.0)
    store = LabelStore(tmp_path / "store.json", conf=str(testbed.conf))
    steps: list[Step] = []
    layer = Steerer(SlurmClient(testbed.commands), order, store, tmp_path / "off", settings, run=run)
    testbed.kill_controller()
    try:
        layer.follow(steps.append, num_steps=1)
    finally:
        testbed.start_controller()
    assert steps == []
    assert [event.kind for event in log.events(run.id)] == ["unreachable"]
    layer.follow(steps.append, num_steps=2)
    assert [step.fallback for step in steps] == [""]


def test_labels_are_not_forgotten_while_slurm_cannot_be_reached(
    testbed: Testbed, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("STRETTO_HOME", str(tmp_path))
    monkeypatch.setenv("SLURM_CONF", str(testbed.conf))
    testbed.commands.run(["scontrol", "update", "nodename=n1", "state=drain", "reason=test"])
    script = tmp_path / "sleep.sh"
    script.write_text("#!/bin/sh\nsleep 60\n")
    client = SlurmClient(testbed.commands)
    job = client.submit(Submission(str(script), options={"output": "/dev/null"}))
    assert wait_until(lambda: job in client.site_factors(), timeout_s=30.0)
    assert main(["steer", "slurm", "--once", "--apply", "--strategy", "sjf", "--budget", "60s"]) == 0
    assert client.site_factors()[job] > 0
    text = testbed.conf.read_text()
    testbed.conf.write_text("Nonsense=1\n")  # its programs fail at once
    try:
        assert main(["steer", "slurm", "--off"]) == 3
        assert "jobs may still have labels; say --off again later" in capsys.readouterr().err
    finally:
        testbed.conf.write_text(text)
    assert main(["steer", "slurm", "--off"]) == 0
    assert "1 job is in Slurm's own order again" in capsys.readouterr().err
    assert wait_until(lambda: client.site_factors().get(job) == 0, timeout_s=30.0)
    assert main(["steer", "slurm", "--on"]) == 0
