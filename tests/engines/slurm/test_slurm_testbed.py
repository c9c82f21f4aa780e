"""The private Slurm: it comes up, by whomever, and leaves nothing behind."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from stretto.cli.main import main
from stretto.engines.background import wait_until
from stretto.engines.slurm.client.client import Commands, SlurmClient, Submission, program
from stretto.engines.slurm.client.errors import SlurmMissing, SlurmRefused, SlurmUnreachable
from stretto.engines.slurm.testbed.conf import Place, TestbedSpec, cgroup_conf, gres_conf, slurm_conf
from stretto.engines.slurm.testbed.daemons import free_ports, is_program, job_processes, pid_in
from stretto.engines.slurm.testbed.testbed import Testbed
from stretto.errors import InvalidInput, StrettoError

NOBODY = 65534


def test_nodes_are_what_was_asked_for(bed: Testbed, client: SlurmClient) -> None:
    nodes = client.nodes()
    assert [(node.name, node.num_cpus, node.num_gpus) for node in nodes] == [
        ("n1", 2, 0),
        ("n2", 2, 0),
        ("n3", 2, 1),
        ("n4", 2, 1),
    ]
    assert all(node.is_usable for node in nodes)
    assert bed.status().is_up
    assert client.ping()
    assert client.setting("PriorityType") == "priority/multifactor"


def test_takes_its_jobs_with_it(slurm_place: Path, tmp_path: Path) -> None:
    place = slurm_place / "small"
    found = Testbed.up(place, TestbedSpec(num_nodes=1, cpus_per_node=1, auth="none"))
    with pytest.raises(InvalidInput, match="already running here"):
        Testbed.up(place, TestbedSpec(num_nodes=1))
    script = tmp_path / "sleep.sh"
    script.write_text("#!/bin/sh\nexec sleep 600\n")
    SlurmClient(found.commands).submit(Submission(str(script), options={"output": "/dev/null"}))
    assert wait_until(lambda: len(list(job_processes(found.conf))) >= 2, timeout_s=60.0)
    pids = [*found.pids(), *job_processes(found.conf)]
    assert found.down(is_kept=False) == []
    assert not [pid for pid in pids if is_program(pid, "slurmd") or is_program(pid, "sleep")]
    assert not list(job_processes(found.conf))
    assert not place.exists()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become an ordinary user")
def test_an_ordinary_user_can_have_one(slurm_place: Path) -> None:
    home = slurm_place / "nobody"
    home.mkdir()
    slurm_place.chmod(0o755)
    shutil.chown(home, NOBODY, NOBODY)
    drop = [program("setpriv"), f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups", "--"]
    settings = dict(os.environ, STRETTO_HOME=str(home), HOME=str(home), PYTHONDONTWRITEBYTECODE="1")
    words = [*drop, sys.executable, "-m", "stretto.cli.main", "testbed", "slurm"]
    if subprocess.run([*drop, sys.executable, "-c", "import stretto"], check=False, cwd=home).returncode != 0:
        pytest.skip("an ordinary user cannot read this installation")

    def call(*more: str) -> str:
        done = subprocess.run([*words, *more], env=settings, cwd=home, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout

    assert call("up", "--nodes", "1", "--cpus", "1", "--gpus", "1").startswith("export SLURM_CONF=")
    try:
        status = json.loads(call("status", "--output", "json"))
        assert status["is_up"]
        assert status["nodes"] == {"n1": "idle"}
        assert os.stat(f"/proc/{status['controller_pid']}").st_uid == NOBODY
    finally:
        call("down")
    assert not (home / "slurm-testbed").exists()


def test_the_command_line_says_what_is_wrong(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["testbed", "slurm", "status", "--dir", str(tmp_path)]) == 2
    assert "no Slurm testbed" in capsys.readouterr().err
    assert main(["testbed", "slurm", "down", "--dir", str(tmp_path)]) == 2
    assert main(["testbed", "slurm", "up", "--nodes", "0"]) == 2
    assert "num_nodes" in capsys.readouterr().err


def test_never_takes_a_folder_that_is_not_its_own(slurm_place: Path) -> None:
    other = slurm_place / "other"
    other.mkdir()
    (other / "thesis.tex").write_text("...")
    with pytest.raises(InvalidInput, match="not empty"):
        Testbed.up(other)
    with pytest.raises(InvalidInput, match="no Slurm testbed"):
        Testbed(other).down(is_kept=False)
    assert (other / "thesis.tex").exists()


@pytest.mark.parametrize(
    "settings",
    [
        {"num_nodes": 0},
        {"num_nodes": 1000},
        {"cpus_per_node": 0},
        {"gpus_per_node": -1},
        {"num_nodes": 2, "num_gpu_nodes": 3},
        {"auth": "trust"},
    ],
)
def test_refuses_shapes_that_cannot_be(settings: dict[str, object]) -> None:
    with pytest.raises(InvalidInput):
        TestbedSpec(**settings)  # type: ignore[arg-type]


@pytest.mark.parametrize("folder", ["/tmp/two words", "/tmp/a#b", "/tmp/" + 100 * "x"])
def test_refuses_paths_that_slurm_cannot_read(folder: str) -> None:
    with pytest.raises(InvalidInput):
        Place(Path(folder), 1, (2,), "me", "here")


def test_the_configuration_names_every_node_and_gpu() -> None:
    spec = TestbedSpec(num_nodes=3, cpus_per_node=5, gpus_per_node=2)
    place = Place(Path("/bed"), 7000, (7001, 7002, 7003), "me", "here")
    text = slurm_conf(spec, place)
    assert spec.gpu_nodes == ("n2", "n3")
    assert text.count("NodeName=") == 3
    assert "NodeName=n3 NodeHostname=here NodeAddr=127.0.0.1 Port=7003 CPUs=5" in text
    assert text.count("Gres=gpu:2") == 2
    assert "NodeName=n2,n3 Name=gpu File=/bed/dev/gpu[0-1]" in gres_conf(spec, place)
    assert (cgroup_conf((22, 5)), cgroup_conf((24, 11))) == (None, "CgroupPlugin=disabled\n")


def test_ports_are_free_and_differ() -> None:
    ports = free_ports(20)
    assert len(set(ports)) == 20
    with pytest.raises(StrettoError):
        free_ports(100_000)


def test_a_pid_file_of_another_program_is_not_believed(tmp_path: Path) -> None:
    path = tmp_path / "slurmctld.pid"
    for text in (str(os.getpid()), "", "none", "1", "99999999"):
        path.write_text(text)
        assert pid_in(path, "slurmctld") is None
    assert pid_in(tmp_path / "absent", "slurmctld") is None


class TestCommands:
    def test_a_program_that_hangs_is_unreachable(self) -> None:
        with pytest.raises(SlurmUnreachable, match="no answer within"):
            Commands().run(["sleep", "30"], timeout_s=0.2)

    def test_complaints_are_passed_on(self) -> None:
        with pytest.raises(SlurmRefused, match="nothing here"):
            Commands().run(["ls", "/nothing here"])

    @pytest.mark.parametrize(
        ("words", "kind"),
        [
            ("sbatch: error: slurm_msg_sendto: msg_type=4003: Unexpected missing socket error", SlurmUnreachable),
            ("Unable to contact slurm controller (connect failure)", SlurmUnreachable),
            ("slurm_load_jobs error: Socket timed out on send/recv operation", SlurmUnreachable),
            ("error: GraphTasks job submission failed: Invalid partition name specified", SlurmRefused),
            ("GraphTasks job submission failed: Job dependency problem", SlurmRefused),
            ("Invalid job id specified for job 999", SlurmRefused),
        ],
    )
    def test_who_is_to_blame_shows_in_the_complaint(self, words: str, kind: type[Exception], tmp_path: Path) -> None:
        script = tmp_path / "complain.sh"
        script.write_text(f"echo '{words}' >&2\nexit 1\n")
        with pytest.raises(kind):
            Commands().run(["sh", str(script)])

    def test_a_missing_program_is_named(self) -> None:
        with pytest.raises(SlurmMissing, match="sbatchx"):
            Commands().run(["sbatchx"])

    def test_a_dead_controller_is_unreachable_soon(self, slurm_place: Path) -> None:
        conf = slurm_place / "dead.conf"
        port = free_ports(1)[0]
        conf.write_text(
            f"ClusterName=dead\nSlurmctldHost=localhost(127.0.0.1)\nSlurmctldPort={port}\nAuthType=auth/none\n"
        )
        with pytest.raises((SlurmUnreachable, SlurmRefused)):
            SlurmClient(Commands(conf, timeout_s=2.0)).queue()
        assert not SlurmClient(Commands(conf, timeout_s=2.0)).ping()

    def test_options_of_an_enclosing_job_are_not_inherited(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("SBATCH_PARTITION", "debug")
        monkeypatch.setenv("SLURM_JOB_ID", "3")
        settings = Commands(Path("/x/slurm.conf")).environment()
        assert "SBATCH_PARTITION" not in settings
        assert "SLURM_JOB_ID" not in settings
        assert settings["SLURM_CONF"] == "/x/slurm.conf"
