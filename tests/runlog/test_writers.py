"""Who may resume a run: everybody once its writer is certainly dead, and with --force where that cannot be seen."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from stretto.errors import InvalidInput
from stretto.runlog import RunLog
from stretto.runlog.writer import Writer, evidence, is_alive, this_process, verdict

OTHER_BOOT = "11111111-2222-3333-4444-555555555555"


def writer(*, host: str = "", pid: int = 0, ticks: str = "", boot_id: str = "", space: str = "") -> Writer:
    """Return this process, but for what is given."""
    here = this_process()
    started = f"{ticks or here.ticks} {boot_id or here.boot_id} {space or here.pid_space}"
    return Writer(host or here.host, pid or here.pid, started)


def test_a_process_is_known_by_its_start_and_by_that_of_its_machine() -> None:
    here = this_process()
    assert verdict(here) == "alive"
    assert here.ticks.isdigit()
    assert here.boot_id == Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    assert verdict(writer(ticks="1")) == "dead"


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        ({"host": "old-name"}, "alive"),  # the machine was renamed, and the process runs
        ({"host": "old-name", "ticks": "1"}, "dead"),  # renamed, and the process is gone
        ({"boot_id": OTHER_BOOT}, "dead"),  # started again
        ({"host": "old-name", "boot_id": OTHER_BOOT}, "unknown"),  # another machine, or renamed and started again
        ({"host": "container", "space": "pid:[1]", "ticks": "1"}, "unknown"),  # process ids of another container
        ({"space": "pid:[1]", "ticks": "1"}, "dead"),  # this container, started again
    ],
)
def test_what_is_certain(found: dict[str, str], expected: str) -> None:
    assert verdict(writer(**found)) == expected  # type: ignore[arg-type]
    assert is_alive(writer(**found)) == (expected != "dead")  # type: ignore[arg-type]


def test_logs_of_earlier_versions_are_judged_by_the_name_of_the_host() -> None:
    here = this_process()
    assert verdict(Writer(here.host, here.pid, here.ticks)) == "alive"
    assert verdict(Writer(here.host, here.pid, "1")) == "dead"
    assert verdict(Writer("elsewhere", here.pid, here.ticks)) == "unknown"
    assert "process 7 on elsewhere; this is" in evidence(Writer("elsewhere", 7, "1"))


def held_by(path: Path, owner: Writer) -> RunLog:
    log = RunLog.open(path)
    log.start("run", "held", {}, run_id="held")
    with log.transaction() as connection:
        connection.execute("UPDATE runs SET host=?, pid=?, pid_started=? WHERE id='held'", tuple(owner))
    return log


def test_a_run_of_a_machine_that_was_renamed_resumes_by_itself(tmp_path: Path) -> None:
    with held_by(tmp_path / "runs.db", writer(host="old-name", ticks="1")) as log:
        assert log.run("held").status == "interrupted"
        assert log.resume("held").record("again") == 1


def test_a_run_whose_writer_cannot_be_seen_is_taken_over_by_force_alone(tmp_path: Path) -> None:
    with held_by(tmp_path / "runs.db", writer(host="far", pid=4711, boot_id=OTHER_BOOT)) as log:
        with pytest.raises(InvalidInput) as refused:
            log.resume("held")
        for word in ("process 4711 on far", OTHER_BOOT, this_process().boot_id, "--resume held --force"):
            assert word in str(refused.value)
        assert log.resume("held", force=True).record("again") == 1


def test_a_writer_that_is_alive_keeps_its_run(tmp_path: Path) -> None:
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as other:
        ticks = Path(f"/proc/{other.pid}/stat").read_text().rsplit(")", 1)[1].split()[19]
        with held_by(tmp_path / "runs.db", writer(host="old-name", pid=other.pid, ticks=ticks)) as log:
            with pytest.raises(InvalidInput, match=rf"process {other.pid} on this machine, which is alive"):
                log.resume("held", force=True)
            other.kill()
            other.wait()
            assert log.resume("held").record("again") == 1
    assert os.getpid() != other.pid
