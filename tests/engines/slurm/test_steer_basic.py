"""Under priority/basic a priority is a number that Slurm gives once: jobs get that number back."""

from __future__ import annotations

from pathlib import Path

import pytest

from stretto.cli.main import main
from stretto.engines.slurm.client.client import SlurmClient, Submission
from stretto.engines.slurm.testbed.conf import TestbedSpec
from stretto.engines.slurm.testbed.testbed import Testbed


@pytest.mark.long
def test_jobs_get_their_numbers_back(slurm_place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STRETTO_HOME", str(tmp_path))
    script = tmp_path / "sleep.sh"
    script.write_text("#!/bin/sh\nsleep 60\n")
    bed = Testbed.up(slurm_place / "basic", TestbedSpec(num_nodes=1, cpus_per_node=1))
    try:
        bed.kill_controller()
        bed.conf.write_text(bed.conf.read_text().replace("priority/multifactor", "priority/basic"))
        bed.start_controller()
        bed.commands.run(["scontrol", "update", "nodename=n1", "state=drain", "reason=test"])
        client = SlurmClient(bed.commands)
        jobs = [client.submit(Submission(str(script), options={"time": 9 - number})) for number in range(3)]

        def priorities() -> list[float]:
            found = {job.job_id: job.priority for job in client.queue()}
            return [found[job] for job in jobs]

        before = priorities()
        assert before == sorted(before, reverse=True)
        words = ["steer", "slurm", "--conf", str(bed.conf), "--once", "--apply", "--budget", "60s", "--strategy", "sjf"]
        assert main(words) == 2  # there are no site factors
        assert main([*words, "--mode", "priority"]) == 0
        assert priorities() == sorted(priorities())
        bed.commands.run(["scontrol", "hold", str(jobs[0])])
        assert main(["steer", "slurm", "--off", "--conf", str(bed.conf)]) == 0
        assert priorities() == [0.0, *before[1:]]
    finally:
        assert bed.down() == []
