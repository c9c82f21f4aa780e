"""Nodes, partitions and reservations from the ``Key=Value`` pairs of ``slurm.conf`` and ``scontrol``."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from stretto.core.site import MIB, Partition, Reservation, SiteNode
from stretto.errors import InvalidInput
from stretto.files.clusters.host_list import expand_hosts
from stretto.files.clusters.site_builder import FilePlace, SiteBuilder, some
from stretto.files.traces import slurm_values as slurm

#: Keys (lower case) and their values.
Pairs = Mapping[str, str]
_GRES = re.compile(
    r"([A-Za-z_][^:(]*)(?::([^:()]*[A-Za-z_][^:()]*))?(?::no_consume)?(?::(-?[0-9]{1,40})([KMG]?))?(?:\(.*\))?"
)
_SCALE = {"": 1, "K": 1024, "M": 1024**2, "G": 1024**3}
_UNUSABLE = ("DOWN", "DRAIN", "FAIL", "MAINT", "NOT_RESPONDING", "ERROR")
_YES = ("yes", "true", "1")
_NO = ("no", "false", "0")
#: What the model of a site has no place for, though it can keep jobs from starting.
_NODE_EXTRAS = ("corespeccount", "cpuspeclist", "memspeclimit")
_PARTITION_EXTRAS = (
    "allowaccounts",
    "denyaccounts",
    "allowgroups",
    "allowqos",
    "denyqos",
    "maxcpuspernode",
    "maxcpuspersocket",
    "maxmempernode",
    "maxmempercpu",
    "minnodes",
    "qos",
)
_DEFAULTS = ("all", "n/a", "(null)", "unlimited", "none", "0", "")


@dataclass
class SlurmParts:
    """Adds parts to a site, and remembers what to say about them."""

    builder: SiteBuilder
    _unusable: list[str] = field(default_factory=list)
    _future: list[str] = field(default_factory=list)
    _unread: dict[str, list[str]] = field(default_factory=dict)
    _private: list[str] = field(default_factory=list)

    def add_node(self, hosts: str, pairs: Pairs, line: int) -> None:
        """Add the nodes of a ``NodeName`` line."""
        state = pairs.get("state", "").upper()
        if state.startswith("FUTURE"):
            self._future.append(hosts)
            return
        place = FilePlace(line)
        with self.builder.at(place):
            template = self._node("node", pairs)
            if any(word in state for word in _UNUSABLE):
                self._unusable += expand_hosts(hosts)
        self._note_unread(hosts, pairs, _NODE_EXTRAS)

        def make(name: str) -> SiteNode:
            return replace(template, name=name)

        self.builder.add_nodes(hosts, make, place)

    def _node(self, name: str, pairs: Pairs) -> SiteNode:
        gpus = self._gpus(pairs.get("gres", ""))
        features = pairs.get("activefeatures") or pairs.get("availablefeatures") or pairs.get("feature", "")
        features = features or pairs.get("features", "")
        memory = _count(pairs, "realmemory")
        return SiteNode(
            name,
            _cpus(pairs),
            float(memory) * MIB if memory is not None else float("inf"),
            gpus,
            frozenset(word for word in re.split(r"[,\s]+", features) if word and not slurm.is_nothing(word)),
            _count(pairs, "weight") or 1,
        )

    def _gpus(self, text: str) -> dict[str, int]:
        gpus: dict[str, int] = {}
        if slurm.is_nothing(text):
            return gpus
        for part in re.split(r",(?![^(]*\))", text):
            found = _GRES.fullmatch(part.strip())
            if found is None:
                raise InvalidInput(f"{part[:60]!r} is not a generic resource such as gpu:a100:4", field="Gres")
            what, kind, count, unit = found.groups()
            number = int(count or 1) * _SCALE[unit or ""]
            if number < 0:
                raise InvalidInput(f"{part[:60]!r} has a negative number", field="Gres")
            if what.lower() != "gpu":
                self._unread.setdefault(f"Gres {what}", [])
            elif number:
                gpus[kind or "gpu"] = gpus.get(kind or "gpu", 0) + number
        return gpus

    def add_partition(self, name: str, pairs: Pairs, line: int) -> None:
        """Add the partition of a ``PartitionName`` line."""
        place = FilePlace(line)
        state = pairs.get("state", "UP").upper()
        if state not in ("UP", ""):
            self.builder.notes.append(f"partition {name} was {state} when the text was made; it is kept as available")
        self._note_unread(name, pairs, _PARTITION_EXTRAS)
        hosts = pairs.get("nodes", "")
        if slurm.is_nothing(hosts):
            self.builder.notes.append(f"partition {name} (line {line}) has no nodes and is left out")
            return
        with self.builder.at(place):
            max_time = _duration(pairs, "maxtime")
            default_time = _duration(pairs, "defaulttime")
            options = {
                "max_time_s": float("inf") if max_time is None else max_time,
                "default_time_s": default_time,
                "max_nodes": _count(pairs, "maxnodes"),
                "is_default": _truth(pairs, "default"),
                "is_exclusive": pairs.get("oversubscribe", pairs.get("shared", "")).upper().startswith("EXCLUSIVE"),
            }
            tier, factor = _count(pairs, "prioritytier"), _count(pairs, "priorityjobfactor")
            both = _count(pairs, "priority")  # until release 16.05, one number for both

        def make(nodes: tuple[str, ...]) -> Partition:
            return Partition(name, nodes, _first(tier, both, 1), _first(factor, both, 1), **options)  # type: ignore[arg-type]

        self.builder.add_partition(name, hosts, make, place)

    def add_reservation(self, name: str, pairs: Pairs, line: int) -> None:
        """Add the reservation of a ``ReservationName`` record."""
        place = FilePlace(line)
        if not slurm.is_nothing(pairs.get("users", "")) or not slurm.is_nothing(pairs.get("accounts", "")):
            self._private.append(name)
        with self.builder.at(place):
            start, end = slurm.moment_s(pairs.get("starttime", "")), slurm.moment_s(pairs.get("endtime", ""))
            if not end > start:
                raise InvalidInput(
                    f"reservation {name!r} from {pairs.get('starttime')!r} to {pairs.get('endtime')!r} is no time",
                    field="reservation",
                )

        def make(nodes: tuple[str, ...]) -> Reservation:
            return Reservation(name, start, end, nodes, is_dated=True)

        hosts = pairs.get("nodes", "")
        if slurm.is_nothing(hosts):
            self.builder.notes.append(f"reservation {name} (line {line}) has no nodes and is left out")
            return
        self.builder.add_reservation(name, hosts, make, place)

    def _note_unread(self, name: str, pairs: Pairs, keys: tuple[str, ...]) -> None:
        for key in keys:
            if pairs.get(key, "").strip().lower() not in _DEFAULTS:
                self._unread.setdefault(key, []).append(name)

    def settle(self) -> None:
        """Write the notes."""
        notes = self.builder.notes
        if self._unusable:
            notes.append(
                f"{len(self._unusable):,} nodes were down or drained when the text was made and are kept as available: "
                f"{some(self._unusable)}"
            )
        if self._future:
            notes.append(f"nodes of the state FUTURE are left out: {some(self._future)}")
        if self._private:
            notes.append(f"reservations for some users or accounts keep all jobs away: {some(self._private)}")
        for key, names in self._unread.items():
            where = f" (of {some(names)})" if names else ""
            notes.append(f"{key}{where} is not part of the model of a site, and has no effect")


def _first(*values: int | None) -> int:
    return next(value for value in values if value is not None)


def _cpus(pairs: Pairs) -> int:
    """Return the processors that jobs can use, given as such or by sockets, cores and threads."""
    direct = next((_count(pairs, key) for key in ("cpuefctv", "cputot", "cpus", "procs") if pairs.get(key)), None)
    if direct is not None:
        return direct
    sockets = _count(pairs, "sockets")
    if sockets is None:
        sockets = (_count(pairs, "boards") or 1) * (_count(pairs, "socketsperboard") or 1)
    return sockets * (_count(pairs, "corespersocket") or 1) * (_count(pairs, "threadspercore") or 1)


def _count(pairs: Pairs, key: str) -> int | None:
    """Return a whole number; None where there is none, or no limit."""
    text = pairs.get(key, "").strip()
    if slurm.is_nothing(text) or text.upper() == "INFINITE":
        return None
    if not re.fullmatch(r"-?[0-9]{1,40}(\.0*)?", text):
        raise InvalidInput(f"{text[:60]!r} is not a whole number", field=key)
    number = int(text.partition(".")[0])
    if number < 0:
        raise InvalidInput(f"{number} must not be negative", field=key)
    return number


def _duration(pairs: Pairs, key: str) -> float | None:
    """Return seconds; None where there is no limit."""
    text = pairs.get(key, "")
    if slurm.is_nothing(text) or text.strip().upper() == "INFINITE":
        return None
    try:
        return slurm.duration_s(text)
    except ValueError as error:
        raise InvalidInput(str(error), field=key) from None


def _truth(pairs: Pairs, key: str) -> bool:
    text = pairs.get(key, "no").strip().lower()
    if text not in (*_YES, *_NO):
        raise InvalidInput(f"{text[:60]!r} is neither YES nor NO", field=key)
    return text in _YES
