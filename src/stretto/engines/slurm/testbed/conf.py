"""What a private Slurm on one machine needs to be told, as the text of its configuration files.

The nodes are invented: any number of ``slurmd`` share the host, each with as many processors as it is told to have.
Nothing here measures anything; jobs on such nodes should sleep, or be few.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from stretto.core.site import Site
from stretto.engines.slurm.testbed.site_conf import site_gres, site_lines
from stretto.errors import InvalidInput

#: A pass right after every change, and every second; jobs whose dependency failed go away by themselves.
FAST_SCHEDULING = (
    "sched_min_interval=0,batch_sched_delay=0,sched_interval=1,default_queue_depth=1000,"
    "bf_interval=1,bf_continue,bf_max_job_test=1000,kill_invalid_depend"
)
#: Of a Unix socket's path; munge's is the longest.
_MOST_PATH = 80
_AUTH = ("munge", "none")
#: Signs tokens; below the folder of a private Slurm.
JWT_KEY = "state/jwt_hs256.key"


@dataclass(frozen=True)
class TestbedSpec:
    """The shape of a private Slurm.

    Attributes
    ----------
    gpus_per_node
        On each of the last ``num_gpu_nodes`` nodes (by default half of them, rounded up).
    auth
        ``munge``, or ``none``: then everyone on the machine is whoever he says he is.
    has_rest
        Whether slurmrestd runs beside the controller and takes tokens.
    names
        Of the nodes; empty = ``n1``, ``n2`` and so on.
    """

    __test__ = False  # the name is no invitation to pytest

    num_nodes: int = 4
    cpus_per_node: int = 8
    gpus_per_node: int = 0
    num_gpu_nodes: int | None = None
    memory_mb: int = 16000
    auth: str = "munge"
    has_rest: bool = False
    names: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "names", tuple(self.names))  # a list, where it was read from JSON
        if self.names and len(self.names) != self.num_nodes:
            raise InvalidInput(f"{len(self.names)} names for {self.num_nodes} nodes", field="names")
        limits = (("num_nodes", 1, 256), ("cpus_per_node", 1, 1024), ("gpus_per_node", 0, 64), ("memory_mb", 1, 2**24))
        for name, least, most in limits:
            if not least <= getattr(self, name) <= most:
                raise InvalidInput(f"{getattr(self, name)} is not between {least} and {most}", field=name)
        if self.num_gpu_nodes is not None and not 0 <= self.num_gpu_nodes <= self.num_nodes:
            raise InvalidInput(f"is {self.num_gpu_nodes}, but there are {self.num_nodes} nodes", field="num_gpu_nodes")
        if self.auth not in _AUTH:
            raise InvalidInput(f"{self.auth!r} is not one of {', '.join(_AUTH)}", field="auth")
        if self.has_rest and self.auth != "munge":
            raise InvalidInput("slurmrestd needs auth munge, which its tokens are based on", field="auth")

    @classmethod
    def of_site(cls, site: Site, *, auth: str = "munge") -> TestbedSpec:
        """Return the shape of a private Slurm with the nodes of a site."""
        most = max(sum(node.gpus.values()) for node in site.nodes)
        names = tuple(node.name for node in site.nodes)
        cpus = max(node.cpus for node in site.nodes)
        return cls(len(names), cpus, most, len(names) if most else None, auth=auth, names=names)

    @property
    def node_names(self) -> tuple[str, ...]:
        return self.names or tuple(f"n{number}" for number in range(1, self.num_nodes + 1))

    @property
    def gpu_nodes(self) -> tuple[str, ...]:
        """The nodes with GPUs, which are the last ones."""
        if self.gpus_per_node == 0:
            return ()
        count = (self.num_nodes + 1) // 2 if self.num_gpu_nodes is None else self.num_gpu_nodes
        return self.node_names[self.num_nodes - count :]


@dataclass(frozen=True)
class Place:
    """Where a private Slurm lives: its folder, its ports, its owner."""

    folder: Path
    controller_port: int
    node_ports: tuple[int, ...]
    user: str
    hostname: str

    def __post_init__(self) -> None:
        text = str(self.folder)
        if any(letter.isspace() or letter in "#\"'," for letter in text):
            raise InvalidInput(
                f"{text!r} contains a space, quote, comma or #, which Slurm cannot read in paths", field="--dir"
            )
        if len(text) > _MOST_PATH:
            raise InvalidInput(
                f"{text!r} is too long: sockets below it need a path of at most {_MOST_PATH} characters", field="--dir"
            )


def slurm_conf(
    spec: TestbedSpec, place: Place, site: Site | None = None, settings: Mapping[str, object] | None = None
) -> str:
    """Return the text of ``slurm.conf``.

    Parameters
    ----------
    site
        Where nodes and partitions come from; None = as many equal nodes in one partition as the spec says.
    settings
        Lines to add or to replace, by name.
    """
    folder = place.folder
    lines = {
        "ClusterName": "stretto",
        "SlurmctldHost": f"{place.hostname}(127.0.0.1)",
        "SlurmctldPort": place.controller_port,
        "SlurmUser": place.user,
        "SlurmdUser": place.user,
        **_auth(spec, place),
        "StateSaveLocation": folder / "state",
        "SlurmdSpoolDir": folder / "spool/%n",
        "SlurmctldPidFile": folder / "run/slurmctld.pid",
        "SlurmdPidFile": folder / "run/slurmd-%n.pid",
        "SlurmctldLogFile": folder / "log/slurmctld.log",
        "SlurmdLogFile": folder / "log/slurmd-%n.log",
        # No cgroups, no accounting: neither is there in a container.
        "ProctrackType": "proctrack/linuxproc",
        "TaskPlugin": "task/none",
        "JobAcctGatherType": "jobacct_gather/none",
        "AccountingStorageType": "accounting_storage/none",
        "JobCompType": "jobcomp/filetxt",
        "JobCompLoc": folder / "log/jobcomp.txt",
        "MpiDefault": "none",
        "SwitchType": "switch/none",
        "SlurmdParameters": "config_overrides",  # two cores may pose as any number
        "SelectType": "select/cons_tres",
        "SelectTypeParameters": "CR_Core",
        "SchedulerType": "sched/backfill",
        "SchedulerParameters": FAST_SCHEDULING,
        # With all weights at zero, jobs stand in order of submission until somebody sets a site factor.
        "PriorityType": "priority/multifactor",
        "ReturnToService": 2,
        "SlurmdTimeout": 60,
        "InactiveLimit": 0,
        "KillWait": 2,
        "MinJobAge": 300,
        "MaxJobCount": 20000,
        "GresTypes": "gpu",
        **(settings or {}),
    }
    if site is not None:
        text = [f"{key}={value}" for key, value in lines.items()]
        return "\n".join([*text, *site_lines(site, place.hostname, place.node_ports), ""])
    nodes = [_node(spec, place, number) for number in range(spec.num_nodes)]
    partition = f"PartitionName=all Nodes={','.join(spec.node_names)} Default=YES MaxTime=INFINITE State=UP"
    return "\n".join([*(f"{key}={value}" for key, value in lines.items()), *nodes, partition, ""])


def gres_conf(spec: TestbedSpec, place: Place, site: Site | None = None) -> str:
    """Return the text of ``gres.conf``; a GPU without a file would count as none."""
    lines = ["AutoDetect=off"]
    if site is not None:
        lines += site_gres(site, place.folder)
    elif spec.gpu_nodes:
        files = f"{place.folder}/dev/gpu[0-{spec.gpus_per_node - 1}]"
        lines.append(f"NodeName={','.join(spec.gpu_nodes)} Name=gpu File={files}")
    return "\n".join([*lines, ""])


def cgroup_conf(version: tuple[int, int]) -> str | None:
    """Return the text of ``cgroup.conf`` for releases that die without it, None for those that do not know it."""
    return "CgroupPlugin=disabled\n" if version >= (23, 11) else None


def _auth(spec: TestbedSpec, place: Place) -> dict[str, object]:
    if spec.auth == "none":
        return {"AuthType": "auth/none", "CredType": "cred/none"}
    tokens = {"AuthAltTypes": "auth/jwt", "AuthAltParameters": f"jwt_key={place.folder / JWT_KEY}"}
    return {
        "AuthType": "auth/munge",
        "CredType": "cred/munge",
        "AuthInfo": f"socket={place.folder}/run/munge.sock",
        **(tokens if spec.has_rest else {}),
    }


def _node(spec: TestbedSpec, place: Place, number: int) -> str:
    name, cpus = spec.node_names[number], spec.cpus_per_node
    has_gpus = name in spec.gpu_nodes
    extra = f"Gres=gpu:{spec.gpus_per_node} Feature=gpu" if has_gpus else "Feature=cpu"
    return (
        f"NodeName={name} NodeHostname={place.hostname} NodeAddr=127.0.0.1 Port={place.node_ports[number]} "
        f"CPUs={cpus} Boards=1 SocketsPerBoard=1 CoresPerSocket={cpus} ThreadsPerCore=1 "
        f"RealMemory={spec.memory_mb} State=UNKNOWN {extra}"
    )
