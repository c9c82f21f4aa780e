"""How Slurm writes durations, moments, memory, states and lists of resources."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from functools import lru_cache
from types import MappingProxyType

from stretto.core.trace import UNKNOWN
from stretto.files.traces.job_rows import CANCELLED, COMPLETED, FAILED

#: From here up, a 32-bit number means "none" or "no limit" in old output.
_NO_VALUE_32 = 0xFFFFFFF0
_NO_VALUE_64 = 0xFFFFFFFFFFFFFFF0
_NOTHING = frozenset({"", "unknown", "none", "n/a", "invalid", "(null)", "not_set", "partition_limit", "unlimited"})
_DURATION = re.compile(r"(?:(\d{1,6})-)?(\d{1,9})(?::(\d{1,2}))?(?::(\d{1,2}))?(\.\d{1,9})?")
_MEMORY = re.compile(r"(\d+(?:\.\d*)?)([KMGTPE]?)B?([nc]?)", re.IGNORECASE)
_SCALE = {"": 2**20, "K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40, "P": 2**50, "E": 2**60}
_FAILED = ("FAILED", "TIMEOUT", "NODE_FAIL", "OUT_OF_MEMORY", "BOOT_FAIL", "DEADLINE", "PREEMPTED", "LAUNCH_FAILED")
_UNFINISHED = ("PENDING", "RUNNING", "SUSPENDED", "REQUEUED", "RESIZING", "CONFIGURING", "COMPLETING", "STOPPED")


def is_nothing(text: str) -> bool:
    """Say whether a field holds no value; ``UNLIMITED`` is no value either."""
    return text.strip().lower() in _NOTHING


@lru_cache(maxsize=65536)
def duration_s(text: str) -> float:
    """Return seconds of ``[days-]hours:minutes:seconds``, ``minutes:seconds`` or ``days-hours``; NaN for none."""
    if is_nothing(text):
        return math.nan
    found = _DURATION.fullmatch(text.strip())
    if found is None:
        raise ValueError(f"{text[:60]!r} is not a duration")
    days, first, second, third, fraction = found.groups()
    parts = [int(part) for part in (first, second, third) if part is not None]
    if days is not None:  # days-hours[:minutes[:seconds]]
        parts += [0] * (3 - len(parts))
    elif len(parts) == 1:  # a bare number counts minutes
        parts = [0, parts[0], 0]
    elif len(parts) == 2:
        parts = [0, *parts]
    hours, minutes, seconds = parts
    return ((int(days or 0) * 24 + hours) * 60 + minutes) * 60 + seconds + float(fraction or 0)


def moment_s(text: str) -> float:
    """Return Unix seconds of an ISO time or of a number; NaN for none. Times without a zone count as UTC."""
    text = text.strip()
    if is_nothing(text):
        return math.nan
    if text.isascii() and text.isdigit():
        return float(int(text[:18])) or math.nan
    try:
        when = datetime.fromisoformat(text)
        return (when if when.tzinfo is not None else when.replace(tzinfo=UTC)).timestamp()
    except (ValueError, OverflowError):
        raise ValueError(f"{text[:60]!r} is not a time") from None


def memory_bytes(text: str, *, num_procs: int, num_nodes: int) -> float:
    """Return bytes of ``16G``, ``4Gn`` (per node) or ``2000Mc`` (per processor); a bare number counts megabytes."""
    if is_nothing(text) or text.strip() in ("?", "0"):
        return 0.0
    found = _MEMORY.fullmatch(text.strip())
    if found is None:
        raise ValueError(f"{text[:60]!r} is not an amount of memory")
    number, unit, per = found.groups()
    amount = float(number) * _SCALE[unit.upper()]
    return amount * {"": 1, "n": num_nodes, "c": num_procs}[per.lower()]


@lru_cache(maxsize=65536)
def tres(text: str) -> Mapping[str, str]:
    """Return the parts of ``cpu=8,mem=32G,gres/gpu:a100=2``."""
    pairs = (part.partition("=") for part in text.split(",") if "=" in part)
    return MappingProxyType({key.strip().lower(): value.strip() for key, _, value in pairs})


def num_gpus(counts: Mapping[str, str]) -> int:
    """Return the GPUs of a resource list: the total where it is given, else the sum over types."""
    if "gres/gpu" in counts:
        return whole(counts["gres/gpu"])
    return sum(whole(value) for key, value in counts.items() if key.startswith("gres/gpu:"))


@lru_cache(maxsize=65536)
def whole(text: str) -> int:
    """Return a whole number that may carry a K or M."""
    text = text.strip()
    if is_nothing(text):
        return 0
    found = re.fullmatch(r"(\d{1,15})(?:\.(\d{1,6}))?([KMG]?)", text, re.IGNORECASE)
    if found is None:
        raise ValueError(f"{text[:60]!r} is not a count")
    scale = {"": 1, "K": 1000, "M": 10**6, "G": 10**9}[found.group(3).upper()]
    return int(float(f"{found.group(1)}.{found.group(2) or 0}") * scale)


def state_number(state: str) -> int:
    """Return the SWF status of a state such as ``COMPLETED`` or ``CANCELLED by 1000``."""
    word = state.strip().upper()
    if word.startswith("COMPLETED"):
        return COMPLETED
    if word.startswith("CANCELLED"):
        return CANCELLED
    return FAILED if word.startswith(_FAILED) else UNKNOWN


def is_unfinished(state: str) -> bool:
    """Say whether the job had not ended when the record was made."""
    return state.strip().upper().startswith(_UNFINISHED)


def json_number(value: object) -> float:
    """Return a number of any Slurm's JSON: plain, text, or ``{"set", "infinite", "number"}``; NaN for none."""
    if isinstance(value, dict):
        if value.get("infinite") is True or value.get("set") is False:
            return math.nan
        value = value.get("number")
    if isinstance(value, bool) or not isinstance(value, (str, int, float)):
        return math.nan
    if isinstance(value, str) and is_nothing(value):
        return math.nan
    try:
        number = float(value)
    except (ValueError, OverflowError):
        raise ValueError(f"{str(value)[:60]!r} is not a number") from None
    return math.nan if _NO_VALUE_32 <= number <= 0xFFFFFFFF or number >= _NO_VALUE_64 else number
