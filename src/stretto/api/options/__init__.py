"""Parameters that few calls need, grouped and checked when they are made; the only place of their defaults.

Light to import: the command line makes its options from these classes.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from stretto.api.options.energy import EnergyOptions
from stretto.core.units import is_count
from stretto.errors import InvalidInput

if TYPE_CHECKING:
    from stretto.core.planner import Progress
    from stretto.core.pool import Pool, Spot
    from stretto.core.problem import Problem
    from stretto.files.prices.offer import Offer
    from stretto.graphs.rental.goal import RentalGoal
    from stretto.queues.mars.replay import MarsSettings
    from stretto.queues.replay import Tie
    from stretto.queues.strategies import PriorityWeights

MARS = "mars"


@dataclass(frozen=True)
class PoolOptions:
    """Plan on pools of machines in place of a cluster, within limits of time and money.

    Attributes
    ----------
    pools
        Pools, their TOML file, a price list, or shorthand such as ``own:128*16,cloud:0-64*8@0.40~90s``.
    objective
        What is minimized: ``cost``, ``time`` or ``both``.
    deadline
        Such as ``2h`` or ``90min``.
    budget
        At most so much: ``20USD``, or a number of USD.
    """

    pools: Sequence[Pool] | str | Path
    objective: str = "cost"
    deadline: str | None = None
    budget: str | float | None = None

    def __post_init__(self) -> None:
        self.goal()

    def goal(self) -> RentalGoal:
        """Return the objective and the limits as the search for a plan has them."""
        from stretto.core.units import parse_usd
        from stretto.graphs.rental.goal import RentalGoal

        deadline = math.inf if self.deadline is None else _seconds(self.deadline, "deadline")
        return RentalGoal(self.objective, deadline, math.inf if self.budget is None else parse_usd(self.budget))


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
        Of backfill ``promise``: how much later than planned at submission a job may start, by default ``24h+4e+1wait``:
        a day, four times its estimate, and once its planned wait; ``0``: not at all, ``inf``: no promise;
        ``24h+4e,user:ann=1h``: other slack for some jobs. Of backfill ``slack``: how much of its estimate the head may
        be delayed, 0.5 by default.
    quantile
        Of estimates ``quantile``.
    wait_usd_per_hour
        Of pool rule ``burst``: what an hour less of waiting is worth.
    weights
        Of strategy ``multifactor``.
    as_steered
        On a site: play what steering its Slurm can do, with a look at the queue every so often, such as ``30s``: the
        order alone is ours, Slurm's own schedulers start the jobs. With backfill ``promise``, inside promises.
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
    as_steered: str | None = None


@dataclass(frozen=True)
class TraceOptions(EnergyOptions):
    """How strategies are compared on a trace, and what nodes draw that do not state it.

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
    rank_by
        The figure that decides which strategy is best, such as ``mean_wait_s``, ``p99_wait_s``, ``max_wait_s``,
        ``utilization``, ``cost_usd``, ``energy_kwh`` or ``carbon_kg``.
    """

    backfill: str | Sequence[str] = "easy"
    estimates: str = "user"
    pool_rule: str = "cheapest"
    windows: int = 0
    window_size: int = 5000
    kill: bool = False
    strict: bool = False
    seed: int = 0
    rank_by: str = "mean_bounded_slowdown"

    def __post_init__(self) -> None:
        super().__post_init__()
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
            raise InvalidInput("--force works only with --resume: there is no run to take over", field="--force")


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
        if not is_count(most) or (dash and not is_count(least)):
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
        raise InvalidInput(f"{text!r} contains no name", field=field)
    return list(dict.fromkeys(names))
