"""What the shell may offer after Tab: names of the catalog and of plugins; nothing heavy is imported."""

from __future__ import annotations

#: Cases of racks, as of ``racks/symphony/cases.py``: that compiles kernels, for which nobody waits after Tab. A test
#: keeps them equal.
RACK_CASES = ("two-nics", "small-rack", "paper-rack")

#: What ``mars`` can compare, as of ``queues/mars/cost.py``.
MEASURES = ("bounded-slowdown", "flow", "tail", "fairness", "mars-v1")


def policy_names(incomplete: str) -> list[str]:
    """Offer policies."""
    return _names("policies", incomplete)


def strategy_names(incomplete: str) -> list[str]:
    """Offer orders of a queue."""
    return _names("strategies", incomplete)


def backfill_names(incomplete: str) -> list[str]:
    """Offer ways of backfilling."""
    return _names("backfills", incomplete)


def estimate_names(incomplete: str) -> list[str]:
    """Offer models of run times."""
    return _names("estimates", incomplete)


def pool_rule_names(incomplete: str) -> list[str]:
    """Offer choices of a pool."""
    return _names("pool-rules", incomplete)


def trainer_names(incomplete: str) -> list[str]:
    """Offer what can be trained."""
    from stretto.catalog import TRAINERS

    return [name for name in TRAINERS if name.startswith(incomplete)]


def rack_cases(incomplete: str) -> list[str]:
    """Offer racks with their jobs."""
    return [name for name in RACK_CASES if name.startswith(incomplete)]


def run_dispatchers(incomplete: str) -> list[str]:
    """Offer dispatchers of real runs."""
    return _names("run-dispatchers", incomplete)


def rack_dispatchers(incomplete: str) -> list[str]:
    """Offer dispatchers of racks."""
    return _names("dispatchers", incomplete)


def measure_names(incomplete: str) -> list[str]:
    """Offer what mars can compare."""
    return [name for name in MEASURES if name.startswith(incomplete)]


def policy_lists(incomplete: str) -> list[str]:
    """Offer policies for a list with commas between them."""
    return _after_comma("policies", incomplete)


def strategy_lists(incomplete: str) -> list[str]:
    """Offer strategies for a list with commas between them."""
    return _after_comma("strategies", incomplete)


def graph_sources(incomplete: str) -> list[str]:
    """Offer built-in workloads once the word begins like one; otherwise the shell offers files."""
    if not incomplete or not ("workload:".startswith(incomplete) or incomplete.startswith("workload:")):
        return []
    return [name for name in (f"workload:{name}" for name in _names("workloads", "")) if name.startswith(incomplete)]


def _after_comma(what: str, incomplete: str) -> list[str]:
    before, comma, last = incomplete.rpartition(",")
    return [f"{before}{comma}{name}" for name in _names(what, last)]


def _names(what: str, incomplete: str) -> list[str]:
    from stretto.cli.describe import names_of

    return [name for name in names_of(what) if name.startswith(incomplete)]
