"""Parameters that few calls need, grouped and checked when they are made; the only place of their defaults.

Light to import: the command line makes its options from these classes.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from stretto.errors import InvalidInput

if TYPE_CHECKING:
    from stretto.core.planner import Progress
    from stretto.core.pool import Pool, Spot
    from stretto.core.problem import Problem
    from stretto.engines.slurm.client.rest import RestPlace
    from stretto.files.prices.offer import Offer
    from stretto.queues.mars.replay import MarsSettings
    from stretto.queues.replay import Tie
    from stretto.queues.strategies import PriorityWeights
    from stretto.queues.workflows.pools import Aim

MARS = "mars"


@dataclass(frozen=True)
class PoolOptions:
    """Plan on pools of machines in place of a cluster, within limits of time and money.

    Attributes
    ----------
    pools
        Pools, their TOML file, or shorthand such as ``own:128*16,cloud:0-64*8@0.40~90s``.
    objective
        What is minimized: ``cost``, ``time`` or ``both``.
    deadline
        Such as ``2h`` or ``90min``.
    spend
        At most so many USD.
    """

    pools: Sequence[Pool] | str | Path
    objective: str = "cost"
    deadline: str | None = None
    spend: float | None = None

    def __post_init__(self) -> None:
        self.aim()

    def aim(self) -> Aim:
        """Return the objective and the limits as the search for a way to run a workflow has them."""
        from stretto.queues.workflows.pools import Aim

        return Aim(
            self.objective,
            deadline_s=math.inf if self.deadline is None else _seconds(self.deadline, "deadline"),
            budget_usd=math.inf if self.spend is None else self.spend,
        )


@dataclass(frozen=True)
class MarsOptions:
    """What its operator tells the strategy ``mars``; None is its own default.

    Attributes
    ----------
    nets
        A file of trained networks to choose from, as ``stretto train mars --save`` writes it.
    default
        The operator's policy: an order or network that is followed unless another is surely cheaper, and that guards
        against choices which turn out to cost more.
    measure
        What is minimized: ``bounded-slowdown``, ``flow``, ``tail``, ``fairness`` or ``mars-v1``.
    money
        Weight of cost: how many units of the measure one USD is worth.
    price
        USD for a processor for an hour.
    """

    nets: str | None = None
    default: str | None = None
    measure: str | None = None
    money: float | None = None
    price: float | None = None

    def settings(self, *, starts_jobs: bool = True) -> MarsSettings:
        """Return the settings of mars; a wrong name or file is found here.

        Parameters
        ----------
        starts_jobs
            Whether jobs can be held back; on a live queue they cannot.
        """
        from stretto.queues.mars.candidates import WEIGHTED_POLICY
        from stretto.queues.mars.cost import JobCost
        from stretto.queues.mars.replay import MarsSettings

        given: dict[str, Any] = {"measure": self.measure, "money": self.money, "price_usd_per_proc_hour": self.price}
        cost = JobCost(**{name: value for name, value in given.items() if value is not None})
        settings = MarsSettings(self.nets, self.default, cost)
        needs_site = starts_jobs and self.default == WEIGHTED_POLICY  # on a plain machine the replay refuses it
        settings.candidates(starts_jobs=starts_jobs, site_policy=WEIGHTED_POLICY if needs_site else None)
        return settings


def mars_settings(strategy: object, options: MarsOptions | None, *, starts_jobs: bool = True) -> MarsSettings | None:
    """Return what mars is told; None for any other strategy, which must not be given such options."""
    options = options or MarsOptions()
    if strategy == MARS:
        return options.settings(starts_jobs=starts_jobs)
    for name, value in vars(options).items():
        if value not in (None, False):
            raise InvalidInput(f"works only with --strategy {MARS}, not with {strategy!r}", field=f"--{name}")
    return None


@dataclass(frozen=True)
class ReplayRules:
    """The rules of a replay beside its strategy.

    Attributes
    ----------
    backfill, estimates, pool_rule
        Names of ``stretto list backfills``, ``estimates`` and ``pool-rules``.
    kill
        Whether jobs end at their wall limit, the user's estimate.
    tie
        ``batch``: one pass per moment; ``one-event``: one per event.
    slack
        Of backfill ``promise``: how much later than planned at submission a job may start, a time plus a multiple of
        its estimate, ``24h+4e`` by default; ``0``: not at all, ``inf``: nothing is promised. Other values for some jobs
        follow: ``24h+4e,partition:debug=1h,qos:high=0``. Of backfill ``slack``: how much of its estimate the head may
        be delayed, 0.5 by default.
    quantile
        Of estimates ``quantile``.
    wait_usd_per_hour
        Of pool rule ``burst``: what an hour less of waiting is worth.
    weights
        Of strategy ``multifactor``.
    """

    backfill: str = "easy"
    estimates: str = "user"
    pool_rule: str = "cheapest"
    kill: bool = False
    tie: Tie = "batch"
    slack: float | str | None = None
    quantile: float = 0.9
    wait_usd_per_hour: float = 1.0
    weights: PriorityWeights | None = None


@dataclass(frozen=True)
class TraceOptions:
    """How strategies are compared on a trace.

    Attributes
    ----------
    backfill
        Names of ``stretto list backfills`` with commas between them, or ``all``; each strategy is replayed with each.
    windows
        Random windows of the trace that are replayed; 0 replays all of it once.
    window_size
        Jobs of a window.
    kill
        Whether jobs end at their wall limit, the user's estimate.
    strict
        Stop at the first invalid row of a file.
    seed
        Draws the windows, and interruptions of spot pools.
    """

    backfill: str | Sequence[str] = "easy"
    estimates: str = "user"
    pool_rule: str = "cheapest"
    windows: int = 0
    window_size: int = 5000
    kill: bool = False
    strict: bool = False
    seed: int = 0

    def __post_init__(self) -> None:
        if self.windows < 0:
            raise InvalidInput(f"{self.windows} must not be negative", field="windows")
        if self.window_size < 1:
            raise InvalidInput(f"{self.window_size} must be at least 1", field="window_size")

    @property
    def backfills(self) -> list[str]:
        """The backfillings that are meant."""
        from stretto.catalog import BACKFILLS

        if self.backfill == "all":
            return list(BACKFILLS)
        return split_names(self.backfill, "backfill") if isinstance(self.backfill, str) else list(self.backfill)

    def rules(self) -> dict[str, Any]:
        """Return the rules that all replays share."""
        return {"estimates": self.estimates, "pool_rule": self.pool_rule, "kill": self.kill, "seed": self.seed}


@dataclass(frozen=True)
class Record:
    """Keep a run in the run log, so that it can be resumed.

    Attributes
    ----------
    runs
        The run log, by default your own.
    resume
        The run to resume, or ``latest``: what it finished is not repeated.
    force
        Resume although it cannot be seen whether another process still writes the run.
    telemetry
        Keep what this host's counters say beside the run.
    on_progress
        Told news of the planning.
    on_plan
        Told the problem before the run begins.
    on_begin
        Told the id of the run and the number of tasks that are done already.
    on_notice
        Told, in a sentence, what the user should know while the run goes on.
    """

    runs: str | Path | None = None
    resume: str | None = None
    force: bool = False
    telemetry: bool = False
    on_progress: Callable[[Progress], None] | None = None
    on_plan: Callable[[Problem], None] | None = None
    on_begin: Callable[[str, int], None] | None = None
    on_notice: Callable[[str], None] | None = None

    def __post_init__(self) -> None:
        if self.force and self.resume is None:
            raise InvalidInput("--force belongs to --resume: there is no run to take over", field="--force")


@dataclass(frozen=True)
class SteerOptions:
    """How a live queue is steered.

    Attributes
    ----------
    mode
        ``sitefactor`` is added to Slurm's own priority; ``priority`` takes its place.
    interval
        Between looks at the queue.
    budget
        For a decision; a later one is dropped.
    depth
        Jobs from the head of the queue on that are ordered.
    """

    mode: str = "sitefactor"
    interval: str = "2s"
    budget: str = "1s"
    depth: int = 200

    @property
    def interval_s(self) -> float:
        from stretto.core.units import parse_seconds

        return parse_seconds(self.interval)

    @property
    def budget_s(self) -> float:
        from stretto.core.units import parse_seconds

        return parse_seconds(self.budget)


@dataclass(frozen=True)
class SlurmPlace:
    """How Slurm is reached: by its programs and a ``slurm.conf``, or by its REST daemon.

    Attributes
    ----------
    conf
        By default ``$SLURM_CONF``.
    rest
        URL of slurmrestd.
    token_file
        Holds the token for it; by default ``$SLURM_JWT``.
    """

    conf: Path | None = None
    rest: str | None = None
    token_file: Path | None = None

    def __post_init__(self) -> None:
        if self.rest is None and self.token_file is not None:
            raise InvalidInput("is for --rest URL", field="--token-file")
        if self.rest is not None and self.conf is not None:
            raise InvalidInput("Slurm is reached by its programs (--conf) or by --rest, not by both", field="--conf")

    def rest_place(self) -> RestPlace | None:
        """Return the REST daemon, where that is meant."""
        from stretto.engines.slurm.client.rest import RestPlace

        if self.rest is None:
            return None
        return RestPlace(self.rest, str(self.token_file.resolve()) if self.token_file is not None else None)

    def conf_path(self) -> str | None:
        """Return the slurm.conf that is meant, such that a guard process finds it from any directory."""
        import os

        named = str(self.conf) if self.conf is not None else os.environ.get("SLURM_CONF")
        return str(Path(named).resolve()) if named and self.rest is None else None


@dataclass(frozen=True)
class OfferFilter:
    """What a cloud machine must have.

    Attributes
    ----------
    gpu, gpus
        An accelerator such as ``A100``, and at least how many of them.
    memory
        At least so much, with its unit, such as ``64GB``.
    region
        A region or zone; ``*`` stands for anything, as in ``us-*``.
    max_price
        USD per hour.
    """

    gpu: str | None = None
    gpus: float = 1.0
    procs: int = 1
    memory: str = "0"
    provider: str | None = None
    region: str | None = None
    max_price: float = math.inf


@dataclass(frozen=True)
class SpotOptions:
    """Buy on the spot market, at the prices of a series.

    Attributes
    ----------
    spot_series
        A CSV file of prices.
    bid
        USD per hour; the pool closes while the price is higher.
    hazard
        Interruptions per node-hour.
    checkpoint
        Jobs keep their work this often.
    start
        The date in the series at which time begins.
    """

    spot_series: str
    bid: float = math.inf
    hazard: float = 0.0
    checkpoint: str | None = None
    start: str | None = None

    def market(self, offer: Offer, region: str | None) -> Spot:
        """Return the spot market of an offer."""
        from stretto.files.prices.spot_series import spot_series

        where = region if region is not None and "*" not in region else offer.region
        is_zone = bool(offer.zone) and where == offer.zone
        return spot_series(
            self.spot_series,
            offer.instance_type,
            region=None if is_zone else where,
            zone=where if is_zone else None,
            start=self.start,
            hazard_per_hour=self.hazard,
            bid_usd_per_hour=self.bid,
            checkpoint_s=math.inf if self.checkpoint is None else _seconds(self.checkpoint, "checkpoint"),
        )


@dataclass(frozen=True)
class PoolShape:
    """What a pool of an offer's machines is like.

    Attributes
    ----------
    nodes
        Such as ``16``, or ``0-16`` for an elastic pool.
    speed
        Run times are divided by it.
    provision, billing, idle_shutdown
        Times with their units: until a new node is up, the unit of billing, and after how long idle nodes go.
    """

    nodes: str = "1"
    speed: float = 1.0
    provision: str = "0s"
    billing: str = "1s"
    idle_shutdown: str | None = None
    name: str | None = None

    def __post_init__(self) -> None:
        self.limits()

    def limits(self) -> tuple[int | None, int]:
        """Return the least and the most nodes; None where their number is fixed."""
        least, dash, most = self.nodes.rpartition("-")
        if not most.isdecimal() or (dash and not least.isdecimal()):
            raise InvalidInput(f"{self.nodes!r} is not a number of nodes such as 16, or 0-16", field="nodes")
        return (int(least) if dash else None), int(most)

    def pool(self, offer: Offer, market: Spot | None) -> Pool:
        """Return the pool of an offer's machines."""
        from stretto.files.prices.offer import pool_of

        least, most = self.limits()
        return pool_of(
            offer,
            most,
            market,
            name=self.name,
            min_nodes=least,
            speed=self.speed,
            provision_s=_seconds(self.provision, "provision"),
            billing_s=_seconds(self.billing, "billing"),
            idle_shutdown_s=math.inf if self.idle_shutdown is None else _seconds(self.idle_shutdown, "idle_shutdown"),
        )


def _seconds(text: str, field: str) -> float:
    from stretto.core.units import parse_seconds, stating_unit

    return parse_seconds(stating_unit(text, field=field, units=("s", "min", "h")))


def split_names(text: str, field: str) -> list[str]:
    """Return the names of a list with commas between them, each once."""
    names = [name.strip() for name in text.split(",") if name.strip()]
    if not names:
        raise InvalidInput(f"{text!r} names nothing", field=field)
    return list(dict.fromkeys(names))
