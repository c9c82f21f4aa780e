"""What can go wrong between Stretto and a Slurm controller."""

from __future__ import annotations

import re

from stretto.errors import EngineFailure

#: What Slurm says of jobs that cannot be changed any more, or whose priority cannot be set while they are held; of
#: reservations that are gone.
WAITS_NO_LONGER = re.compile(
    r"invalid job id|finished|completed|not pending|no longer pending|disabled|in held state|reservation is invalid",
    re.IGNORECASE,
)

#: What Slurm says to those who lack the rights.
DENIED = re.compile(r"permission|denied|invalid user", re.IGNORECASE)


class SlurmFailure(EngineFailure):
    """Slurm did not do what it was asked to."""


class SlurmUnreachable(SlurmFailure):
    """The controller gave no answer; whether it did what it was asked to is not known."""


class SlurmRefused(SlurmFailure):
    """The controller answered, and said no."""


class SlurmMissing(SlurmFailure):
    """The programs of Slurm are not installed."""
