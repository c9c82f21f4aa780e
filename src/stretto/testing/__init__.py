"""Checks for those who write their own engines and policies; they raise :class:`NotConforming` with what is wrong."""

from stretto.testing.engine_checks import check_engine
from stretto.testing.faults import NotConforming
from stretto.testing.policy_checks import check_policy

__all__ = ["NotConforming", "check_engine", "check_policy"]
