"""What a portfolio chooses from, by name."""

from __future__ import annotations

from stretto.catalog import STRATEGIES
from stretto.errors import InvalidInput
from stretto.queues.kernels.lookahead import BELIEVED, NARROW, SPARE
from stretto.queues.rules import Strategy
from stretto.registry import lookup

#: Ends the name of a strategy that orders by believed run times in place of the user's estimates.
BY_BELIEF = "-believed"

#: Before the percentage of the machine that jobs believed to take more than an hour leave free for shorter ones.
WITH_SPARE = "-spare-"

#: Behind that, where only jobs believed to take less may pass the head of the queue.
NARROWLY = "-narrow"

#: Where a third of the machine is free nobody is held back, so more than that cannot be spared.
MAX_SPARE_PERCENT = 33

#: The orders that need nothing but submission, estimate and processors.
CLASSICS = (
    "saf",
    "fcfs",
    "sjf",
    "ljf",
    "laf",
    "smallest",
    "largest",
    "f1",
    "f2",
    "f3",
    "f4",
    "expansion",
    "wfp3",
    "unicep",
)

#: Orders for a live queue, whose manager starts jobs by itself: the first is the base.
ORDERS = (
    "saf-believed",
    "sjf-believed",
    "f4-believed",
    "expansion-believed",
    "wfp3-believed",
    "unicep-believed",
    *CLASSICS,
)

#: What a portfolio that starts jobs itself chooses from: those, and the base with processors to spare.
MEMBERS = ("saf-believed-spare-5", "saf-believed-spare-15", "saf-believed-spare-5-narrow", *ORDERS)


def member_code(name: str) -> int:
    """Return the number by which the kernels know a candidate.

    That is a strategy of the catalog; with ``-believed`` behind its name it goes by believed run times, and with
    ``-spare-5`` behind that, jobs believed to be long leave 5 % of the machine to shorter ones; with ``-narrow`` at the
    end they do not pass the head of the queue either.
    """
    order, mark, percent = name.partition(WITH_SPARE)
    found = lookup("strategy", order.removesuffix(BY_BELIEF), STRATEGIES)
    if not isinstance(found, Strategy):
        raise InvalidInput(
            f"{name!r} comes from a plugin: it has a key of its own, and works by itself only", field="strategies"
        )
    if found.uses_weights:
        raise InvalidInput(f"{name!r} has weights, and is what Slurm does by itself", field="strategies")
    code = found.code + (BELIEVED if order.endswith(BY_BELIEF) else 0)
    if not mark:
        return code
    return code + SPARE * _spare(name, percent.removesuffix(NARROWLY)) + NARROW * percent.endswith(NARROWLY)


def _spare(name: str, percent: str) -> int:
    if not percent.isdecimal() or not 1 <= int(percent[:9]) <= MAX_SPARE_PERCENT:
        raise InvalidInput(f"{name!r} must spare a percentage from 1 to {MAX_SPARE_PERCENT}", field="strategies")
    return int(percent)
