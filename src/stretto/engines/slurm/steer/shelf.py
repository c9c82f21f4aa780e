"""Where steering layers of this user keep their books and switches: a folder for each Slurm, a book for each partition.

A steerer of one partition and one of another may work side by side; each has its own book, so that whoever takes labels
back (the steerer, its guard, ``--off``) takes back those of one steerer and of no other.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from urllib.parse import quote

from stretto.engines.slurm.client.rest import RestPlace
from stretto.runlog.place import default_path

_ALL = "all"


def shelf() -> Path:
    """Return the folder of all books."""
    return default_path().parent / "steer-slurm"


def book_path(conf: str | None, rest: RestPlace | None, partition: str | None) -> Path:
    """Return where the labels of one partition of one Slurm are kept; None stands for all partitions."""
    place = json.dumps([conf, rest.url if rest is not None else None])
    return shelf() / hashlib.sha256(place.encode()).hexdigest()[:12] / f"{_name(partition)}.json"


def book_of_all(path: Path) -> Path:
    """Return where a steerer of all partitions of the same Slurm keeps its labels."""
    return path.with_name(f"{_ALL}.json")


def books(partition: str | None = None) -> list[Path]:
    """Return all books, or those in which labels of one partition may stand."""
    found = sorted(shelf().glob("*/*.json"))
    return [path for path in found if partition is None or path.stem in (_ALL, _name(partition))]


def switch_path(partition: str | None = None) -> Path:
    """Return the file whose presence means that nobody steers, or nobody this partition."""
    return shelf() / ("off" if partition is None else f"{_name(partition)}.off")


def switches_of(partition: str | None) -> tuple[Path, ...]:
    """Return the files each of which stops a steerer of this partition, or of all."""
    if partition is not None:
        return switch_path(), switch_path(partition)
    return switch_path(), *sorted(shelf().glob("*.off"))


def _name(partition: str | None) -> str:
    return _ALL if partition is None else f"partition-{quote(partition, safe='')}"
