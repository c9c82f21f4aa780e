"""The switch on the page of a steered queue, clicked in a real browser, with a real Slurm behind it."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from web_serving import serving

from stretto.engines.background import wait_until
from stretto.engines.slurm.client.client import SlurmClient, Submission, is_installed
from stretto.engines.slurm.testbed.conf import TestbedSpec
from stretto.engines.slurm.testbed.testbed import Testbed
from stretto.runlog import RunLog

TOKEN = "a-token-of-some-length"
PATIENCE_MS = 240_000
SWITCH = "#steered button.danger"


class Steered:
    """A queue of a private Slurm that a process steers, and the run log of that process."""

    def __init__(self, bed: Testbed, home: Path) -> None:
        self.client, self.runs = SlurmClient(bed.commands), home / "runs.db"
        script = home / "sleep.sh"
        script.write_text("#!/bin/sh\nsleep 60\n")
        self.jobs = [self.client.submit(Submission(str(script), options={"time": 9 - k})) for k in range(3)]
        assert wait_until(lambda: set(self.jobs) <= set(self.client.site_factors()), timeout_s=60.0)
        words = ["steer", "slurm", "--apply", "--interval", "200ms", "--budget", "300s", "--output", "quiet"]
        self.process = subprocess.Popen([sys.executable, "-m", "stretto.cli.main", *words], env=os.environ | {})
        assert wait_until(lambda: all(factor > 0 for factor in self.factors()), timeout_s=120.0)

    def factors(self) -> list[int]:
        found = self.client.site_factors()
        return [found.get(job) or 0 for job in self.jobs]

    @property
    def page(self) -> str:
        with RunLog.open(self.runs) as log:
            return f"/runs/{log.run('latest').id}"


@pytest.fixture(scope="module")
def bed() -> Iterator[Testbed]:
    if not is_installed():
        pytest.skip("Slurm is not installed: make slurm")
    with tempfile.TemporaryDirectory(prefix="slurm-", ignore_cleanup_errors=True) as folder:
        found = Testbed.up(Path(folder) / "bed", TestbedSpec(num_nodes=1, cpus_per_node=1))
        found.commands.run(["scontrol", "update", "nodename=n1", "state=drain", "reason=test"])
        yield found
        assert found.down() == []


@pytest.fixture
def steered(bed: Testbed, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Steered]:
    monkeypatch.setenv("STRETTO_HOME", str(tmp_path))
    monkeypatch.setenv("SLURM_CONF", str(bed.conf))
    found = Steered(bed, tmp_path)
    yield found
    found.process.terminate()  # a killed one would leave its guard behind
    found.process.wait(120)
    found.client.cancel(found.jobs)
    for name in found.client.reservations():
        found.client.unreserve(name)


@pytest.fixture
def page(browser: Any) -> Iterator[Any]:
    context = browser.new_context(viewport={"width": 390, "height": 844})
    context.set_default_timeout(PATIENCE_MS)
    yield context.new_page()
    context.close()


def test_two_clicks_stop_the_steering_and_say_what_came_of_it(steered: Steered, page: Any) -> None:
    with serving(steered.runs, token=TOKEN, num_workers=1) as server:
        page.goto(server.url + steered.page)
        page.fill("input[name=token]", TOKEN)
        page.click("button")
        page.goto(server.url + steered.page)
        page.wait_for_selector(SWITCH)
        assert "moves" in page.inner_text("#found")
        page.click(SWITCH)
        assert page.inner_text(SWITCH) == "Click again to stop the steering"
        assert min(steered.factors()) > 0  # one click does nothing yet
        page.click(SWITCH)
        page.wait_for_selector("#steered .note:has-text('steering is off')")
        assert "3 jobs are in Slurm's own order again" in page.inner_text("#steered")
        page.wait_for_selector("text=Steering has ended")
        assert page.locator(SWITCH).count() == 0
        assert "steering is off" in page.inner_text("#steered")  # what was said is still there
    assert steered.process.wait(60) == 0
    assert steered.factors() == [0, 0, 0]


def test_without_a_token_the_switch_is_refused_and_nothing_stops(steered: Steered, page: Any) -> None:
    with serving(steered.runs, num_workers=1) as server:
        page.goto(server.url + steered.page)
        page.wait_for_selector(SWITCH)
        page.click(SWITCH)
        page.click(SWITCH)
        page.wait_for_selector("#steered .note.error")
        assert "needs a server with a token" in page.inner_text("#steered .note.error")
    with serving(steered.runs, token=TOKEN, num_workers=1) as server:
        page.goto(server.url + steered.page)  # a browser that has not logged in sees nothing to click
        assert page.locator(SWITCH).count() == 0
        assert page.locator("input[name=token]").count() == 1
    assert steered.process.poll() is None
    assert min(steered.factors()) > 0
