"""One job on a spot market before a deadline, led by the real decider on a market that takes instances back."""

from __future__ import annotations

import functools
import random
from dataclasses import dataclass
from typing import Any

from stretto.graphs.rental.spot import SpotDecider, SpotJob, SpotParams, SpotTables

#: Seconds: what rounding may add up to.
ROUNDING_S = 1e-5
STEP_S = 10.0


@dataclass(frozen=True)
class MarketSpec:
    """A job and a market, drawn with the seed of the history; ``spells_s`` alternate, the first one with spot."""

    work_s: float
    reserve_s: float
    changeover_s: float
    spells_s: tuple[float, ...]


def draw_market(rng: random.Random) -> MarketSpec:
    """Draw a job and a market."""
    return MarketSpec(
        work_s=rng.choice([60.0, 90.0]),
        reserve_s=rng.choice([0.0, 7.0, 25.0, 60.0]),
        changeover_s=rng.choice([0.0, 4.0, 11.0]),
        spells_s=tuple(rng.choice([3.0, 8.0, 17.0, 40.0]) * rng.uniform(0.5, 1.5) for _ in range(12)),
    )


@functools.cache
def tables_of(work_s: float, reserve_s: float, changeover_s: float) -> SpotTables:
    """Return the expected costs of a job; a coarse grid is enough here."""
    job = SpotJob(work_s, work_s + changeover_s + reserve_s, changeover_s, 0.3)
    return SpotTables(job, SpotParams(shortest_s=10.0, num_lengths=3, num_ticks=24))


class MarketJob:
    """The job, as the world sees it; a decider that is restarted finds it as it is."""

    def __init__(self, world: Any, spec: MarketSpec) -> None:
        self.world, self.clock, self.spec = world, world.clock, spec
        self.tables = tables_of(spec.work_s, spec.reserve_s, spec.changeover_s)
        self.job = self.tables.job
        self.market, self.left_s, self.starting_s = "idle", spec.work_s, 0.0
        self.is_available, self.news = True, 0
        self.begin_s = self.at_s = self.clock.now_s
        at_s = self.clock.now_s
        for seconds in spec.spells_s:
            at_s += seconds
            self.clock.at(at_s, self.flip)

    @property
    def is_done(self) -> bool:
        return self.left_s <= ROUNDING_S

    def flip(self) -> None:
        """Have spot become available, or be taken back with the instance that runs."""
        self.catch_up()
        self.is_available = not self.is_available
        self.news += 1
        if self.market == "spot" and not self.is_available:
            self.market, self.starting_s = "idle", 0.0
        self.check()

    def catch_up(self) -> None:
        """Do the work of the time that has passed."""
        passed, self.at_s = self.clock.now_s - self.at_s, self.clock.now_s
        if self.market != "idle":
            starting = min(self.starting_s, passed)
            self.starting_s -= starting
            self.left_s = max(0.0, self.left_s - (passed - starting))

    def check(self) -> None:
        """Check the reserve: on demand must be able to end in time from here."""
        slack = self.job.deadline_s - (self.clock.now_s - self.begin_s) - self.left_s
        owed = self.starting_s if self.market == "on demand" else self.job.changeover_s
        if not self.is_done:
            self.clock.need(slack >= owed - ROUNDING_S, f"the spot reserve is broken by {owed - slack:.2f} s")

    def enter(self, market: str) -> None:
        if market != self.market:
            self.clock.tell(f"the spot job is {market if market == 'idle' else 'on ' + market.removeprefix('on ')}")
            self.market, self.starting_s = market, 0.0 if market == "idle" else self.job.changeover_s


def market_main(world: Any) -> None:
    """What the process that leads a job through a spot market does; restarted, it has forgotten what it learned."""
    job: MarketJob = world.market
    decider = SpotDecider(job.tables, STEP_S)
    while not job.is_done:
        world.clock.op("a decision about spot")
        job.catch_up()
        action = decider.decide(
            is_available=job.is_available,
            market=job.market,
            work_left_s=job.left_s,
            elapsed_s=world.clock.now_s - job.begin_s,
            starting_s=job.starting_s,
        )
        world.clock.need(action != "spot" or job.is_available, "the decider chose spot where there is none")
        wait_s = STEP_S
        if action == "idle":
            wait_s = min(wait_s, decider.may_wait_s(job.left_s, world.clock.now_s - job.begin_s))
            if wait_s <= ROUNDING_S:
                action, wait_s = "on demand", STEP_S
        job.enter(action)
        job.check()
        if action != "idle":
            wait_s = min(wait_s, job.starting_s + job.left_s)
        seen = job.news
        world.clock.wait(lambda seen=seen: job.news != seen, wait_s)
        job.catch_up()
        if not job.is_done:
            job.check()
    world.clock.need(
        world.clock.now_s - job.begin_s <= job.job.deadline_s + ROUNDING_S, "the spot job ended after its deadline"
    )
