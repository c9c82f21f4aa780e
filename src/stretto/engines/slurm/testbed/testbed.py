"""A private Slurm on loopback: real ``munged``, ``slurmctld`` and ``slurmd``, invented nodes, no root needed.

Everything lives in one folder: configuration, state, logs, pid files. Taking it down ends what those pid files name,
and whatever jobs are left, and nothing else.
"""

from __future__ import annotations

import contextlib
import json
import os
import pwd
import re
import secrets
import shutil
import socket
import stat
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from stretto.core.site import Site
from stretto.engines.background import wait_until
from stretto.engines.slurm.client.client import Commands, program
from stretto.engines.slurm.client.errors import SlurmFailure
from stretto.engines.slurm.client.rest import RestPlace
from stretto.engines.slurm.testbed import conf
from stretto.engines.slurm.testbed.conf import Place, TestbedSpec
from stretto.engines.slurm.testbed.daemons import PROGRAM as _REST
from stretto.engines.slurm.testbed.daemons import end, free_ports, is_program, job_processes, pid_in, start_rest
from stretto.errors import InvalidInput

#: Says that a folder is ours, so that ``down`` never empties another.
_MARK = "testbed.json"
_FOLDERS = ("state", "spool", "log", "run", "munge", "dev", "jobs")
_CONTROLLER = "slurmctld"
_NODE = "slurmd"


@dataclass(frozen=True)
class TestbedStatus:
    """What of a private Slurm is alive."""

    __test__ = False

    conf: Path
    controller_pid: int | None
    node_pids: dict[str, int | None]
    nodes: dict[str, str]  # state by name, as the controller says; empty where it does not answer

    @property
    def is_up(self) -> bool:
        return self.controller_pid is not None and all(self.node_pids.values())


@dataclass(frozen=True)
class Testbed:
    """The private Slurm of one folder."""

    __test__ = False

    folder: Path

    @property
    def conf(self) -> Path:
        return self.folder / "slurm.conf"

    @property
    def commands(self) -> Commands:
        """How to call its programs."""
        return Commands(self.conf)

    @property
    def spec(self) -> TestbedSpec:
        """Return what it was started with; raise where the folder holds no testbed."""
        try:
            return TestbedSpec(**json.loads((self.folder / _MARK).read_text()))
        except (OSError, ValueError, TypeError):
            raise InvalidInput("holds no Slurm testbed", source=str(self.folder)) from None

    @property
    def rest(self) -> RestPlace:
        """Return where its slurmrestd is; raise where it was started without one."""
        try:
            return RestPlace(**json.loads((self.folder / "run/rest.json").read_text()))
        except (OSError, ValueError, TypeError):
            raise InvalidInput("was started without slurmrestd", source=str(self.folder)) from None

    @classmethod
    def up(
        cls,
        folder: str | Path,
        spec: TestbedSpec | None = None,
        *,
        site: Site | None = None,
        settings: Mapping[str, object] | None = None,
        timeout_s: float = 60.0,
    ) -> Testbed:
        """Write the configuration, start the daemons, and return when all nodes are idle.

        Parameters
        ----------
        site
            Nodes and partitions of the private Slurm, instead of equal nodes in one partition.
        settings
            Lines of ``slurm.conf`` to add or to replace, by name.
        """
        chosen = spec or (TestbedSpec() if site is None else TestbedSpec.of_site(site))
        bed = cls(Path(folder).resolve())
        if bed.pids():
            raise InvalidInput(
                "a testbed is already running here; stop it with: stretto testbed slurm down",
                source=str(bed.folder),
                field="--dir",
            )
        ports = free_ports(chosen.num_nodes + 1)
        host = socket.gethostname().partition(".")[0]
        place = Place(bed.folder, ports[0], tuple(ports[1:]), _user(), host)
        bed._write(chosen, place, site, settings)
        try:
            bed._start(chosen, timeout_s)
        except BaseException:
            bed.down()
            raise
        return bed

    def down(self, *, is_kept: bool = True, patience_s: float = 5.0) -> list[int]:
        """End the daemons and what they left behind; return processes that would not go.

        Parameters
        ----------
        is_kept
            Whether the folder, with its logs, stays.
        """
        if not (self.folder / _MARK).is_file():
            raise InvalidInput(
                "holds no Slurm testbed; start one with: stretto testbed slurm up",
                source=str(self.folder),
                field="--dir",
            )
        if self._controller() is not None:
            with contextlib.suppress(SlurmFailure):
                self.commands.run(["scancel", "--user", _user()], timeout_s=5.0)
        # Nodes before the controller: it would only complain that they do not answer.
        left = end([pid for pid in self.pids() if not is_program(pid, "munged")], patience_s=patience_s)
        left += end(job_processes(self.conf), patience_s=1.0)
        left += end(self.pids(), patience_s=patience_s)
        if not is_kept and not left:
            shutil.rmtree(self.folder)
        return left

    def status(self) -> TestbedStatus:
        """Return what is alive; asks the controller only if there is one."""
        spec = self.spec
        node_pids = {name: pid_in(self._pid_file(f"{_NODE}-{name}"), _NODE) for name in spec.node_names}
        nodes: dict[str, str] = {}
        controller = self._controller()
        if controller is not None:
            with contextlib.suppress(SlurmFailure):
                nodes = self._node_states()
        return TestbedStatus(self.conf, controller, node_pids, nodes)

    def kill_controller(self) -> None:
        """End the controller as a crash would."""
        pid = self._controller()
        if pid is not None:
            os.kill(pid, 9)
            wait_until(lambda: not is_program(pid, _CONTROLLER), timeout_s=10.0)

    def start_controller(self, *, is_fresh: bool = False) -> None:
        """Start the controller; it goes on from its saved state unless it is to forget it."""
        self._call([_CONTROLLER, *(["-i", "-c"] if is_fresh else []), "-f", str(self.conf)])

    def pids(self) -> list[int]:
        """Return the daemons that are alive, nodes first, munge last."""
        programs = [(path, _NODE) for path in sorted((self.folder / "run").glob(f"{_NODE}-*.pid"))]
        programs += [(self._pid_file(name), name) for name in (_REST, _CONTROLLER, "munged")]
        found = (pid_in(path, name) for path, name in programs)
        return [pid for pid in found if pid is not None]

    def _controller(self) -> int | None:
        return pid_in(self._pid_file(_CONTROLLER), _CONTROLLER)

    def _pid_file(self, name: str) -> Path:
        return self.folder / "run" / f"{name}.pid"

    def _write(self, spec: TestbedSpec, place: Place, site: Site | None, settings: Mapping[str, object] | None) -> None:
        if self.folder.exists() and any(self.folder.iterdir()) and not (self.folder / _MARK).is_file():
            raise InvalidInput(
                "is not empty and holds no testbed; choose another folder", source=str(self.folder), field="--dir"
            )
        for name in _FOLDERS:
            (self.folder / name).mkdir(parents=True, exist_ok=True)
        # Munge insists that nobody else may write above its socket; jobs of others must be able to read here.
        for path in (self.folder, *(self.folder / name for name in _FOLDERS)):
            path.chmod(0o755)
        (self.folder / "munge").chmod(0o700)
        (self.folder / _MARK).write_text(json.dumps(vars(spec)))
        self.conf.write_text(conf.slurm_conf(spec, place, site, settings))
        (self.folder / "gres.conf").write_text(conf.gres_conf(spec, place, site))
        if spec.has_rest:
            key = self.folder / conf.JWT_KEY
            key.touch(0o600)
            key.write_bytes(secrets.token_bytes(32))
        cgroup = conf.cgroup_conf(self._version())
        if cgroup is not None:
            (self.folder / "cgroup.conf").write_text(cgroup)
        for number in range(spec.gpus_per_node):
            _make_device(self.folder / "dev" / f"gpu{number}")

    def _start(self, spec: TestbedSpec, timeout_s: float) -> None:
        if spec.auth == "munge":
            self._start_munge(timeout_s)
        self.start_controller(is_fresh=True)
        for name in spec.node_names:
            self._call([_NODE, "-f", str(self.conf), "-N", name])

        def are_idle() -> bool:
            with contextlib.suppress(SlurmFailure):
                states = self._node_states()
                return len(states) == spec.num_nodes and all(state.startswith("idle") for state in states.values())
            return False

        if not wait_until(are_idle, timeout_s=timeout_s, pause_s=0.1):
            raise SlurmFailure(f"the nodes did not come up within {timeout_s:g} s; see {self.folder / 'log'}")
        if spec.has_rest:
            start_rest(self.folder, self.commands, self._version(), timeout_s=timeout_s)

    def _start_munge(self, timeout_s: float) -> None:
        key = self.folder / "munge" / "munge.key"
        if not key.exists():
            key.touch(0o600)
            key.write_bytes(secrets.token_bytes(256))
        run, log = self.folder / "run", self.folder / "log"
        files = (("key", key), ("socket", run / "munge.sock"), ("pid", run / "munged.pid"), ("log", log / "munged.log"))
        options = [f"--{name}{'' if name == 'socket' else '-file'}={path}" for name, path in files]
        # --force: it may run as root and in folders of its own.
        self._call(["munged", "--force", *options, f"--seed-file={self.folder / 'munge/seed'}", "--num-threads=2"])
        if not wait_until((run / "munge.sock").is_socket, timeout_s=timeout_s):
            raise SlurmFailure(f"munged did not come up; see {log / 'munged.log'}")

    def _call(self, words: list[str]) -> None:
        """Start a daemon, which goes into the background by itself."""
        done = subprocess.run(
            [program(words[0]), *words[1:]],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            env=self.commands.environment(),
            cwd=self.folder,
            timeout=60.0,
            check=False,
        )
        if done.returncode != 0:
            complaint = " ".join(done.stderr.decode(errors="replace").split())[:500]
            raise SlurmFailure(f"{words[0]} did not start: {complaint or f'exit code {done.returncode}'}")

    def _node_states(self) -> dict[str, str]:
        text = self.commands.run(["sinfo", "--noheader", "--Node", "--format=%N %T"], timeout_s=5.0)
        rows = (line.split() for line in text.splitlines())
        return {row[0]: row[1] for row in rows if len(row) >= 2}

    def _version(self) -> tuple[int, int]:
        found = re.search(r"(\d+)\.(\d+)", self.commands.run([_CONTROLLER, "-V"]))
        return (int(found.group(1)), int(found.group(2))) if found else (0, 0)


def _user() -> str:
    """Return who we are, whatever the environment says."""
    return pwd.getpwuid(os.geteuid()).pw_name


def _make_device(path: Path) -> None:
    """Make a GPU out of nothing: a device file where we may, else a plain file, which counts all the same."""
    if path.exists():
        return
    try:
        os.mknod(path, 0o666 | stat.S_IFCHR, os.makedev(1, 3))
    except OSError:
        path.touch()
