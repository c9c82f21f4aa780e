"""Graphs of a Dask cluster whose workers dask-jobqueue has started in jobs of Slurm, by our plan."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

import stretto
from stretto.engines.slurm.client.client import SlurmClient
from stretto.engines.slurm.testbed.testbed import Testbed

pytest.importorskip("distributed", reason="the extra dask is not installed")
_on_interrupt = signal.getsignal(signal.SIGINT)
jobqueue = pytest.importorskip("dask_jobqueue", reason="dask-jobqueue is not installed: pip install dask-jobqueue")
signal.signal(signal.SIGINT, _on_interrupt)  # to import it makes Ctrl-C end the process: the tests of Ctrl-C come later


def test_workers_of_a_slurm_cluster_run_our_plan(
    bed: Testbed, client: SlurmClient, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import dask.array as da
    from distributed import Client

    monkeypatch.setenv("SLURM_CONF", str(bed.conf))  # sbatch, which dask-jobqueue calls, looks there
    before = {job.job_id for job in client.queue()}
    with (
        jobqueue.SLURMCluster(
            queue="all",
            cores=1,
            memory="1GB",
            walltime="00:10:00",
            interface="lo",
            log_directory=str(tmp_path),
            local_directory=str(tmp_path),
            scheduler_options={"dashboard": False, "dashboard_address": ":0"},
        ) as cluster,
        Client(cluster) as dask,
    ):
        cluster.scale(jobs=2)
        dask.wait_for_workers(2, timeout=120)
        x = da.ones((60, 60), chunks=(20, 20))
        with stretto.dask.schedule(dask, policy="heft") as report:
            total = (x @ x.T).sum().compute()
        names = {str(worker["name"]) for worker in dask.scheduler_info(n_workers=-1)["workers"].values()}
        jobs = [job for job in client.queue() if job.job_id not in before]
    assert total == 60.0**3
    assert report.num_tasks == report.num_ended > 20
    assert not report.errors
    assert len(names) == len(jobs) == 2
    assert all(job.is_running for job in jobs)
