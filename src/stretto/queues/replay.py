"""Replay a trace of jobs on a machine, in pools or on a site; ``queues.reference.replay`` defines what that means.

This facade resolves the names of the rules and picks the fastest way that can do it: a compiled kernel, the replay of a
selector, or, for keys that depend on the wait, the reference.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Sequence
from dataclasses import replace as replaced
from typing import TYPE_CHECKING, Any, Literal, TypedDict, Unpack, cast

import numpy as np

from stretto.catalog import BACKFILLS, ESTIMATES, POOL_RULES, RECORDS, SELECTOR_REPLAYS, SELECTORS, STRATEGIES
from stretto.core.pool import Pool
from stretto.core.pool_fit import runnable
from stretto.core.site import Site
from stretto.core.trace import Trace
from stretto.errors import Infeasible, InvalidInput, UnknownName
from stretto.queues.kernels import codes
from stretto.queues.kernels.conservative import run_conservative
from stretto.queues.kernels.general import run_general
from stretto.queues.kernels.outcome import ReplayOutcome, new_outcome
from stretto.queues.kernels.run import run_queue
from stretto.queues.kernels.state import new_state
from stretto.queues.promises.facade import KeyedOrder, fill_promised, slack_rule, slack_table
from stretto.queues.recorded.record import RECORDED, recorded_result
from stretto.queues.result import QueueResult, Watch, plain_result
from stretto.queues.selected import SelectorReplay, SelectorSettings
from stretto.queues.setup import ReplaySetup, notes_of, prepare
from stretto.queues.strategies import (
    DEADLINE,
    KeyFunction,
    PlainKey,
    PriorityWeights,
    Strategy,
    StrategyLike,
    StrategySelector,
    WaitKey,
    checked_key,
    name_of_strategy,
    strategy_of,
    submitted,
    takes_wait,
)
from stretto.registry import lookup
from stretto.runlog import Run

if TYPE_CHECKING:
    from stretto.queues.mars.replay import MarsSettings

Machine = int | Sequence[Pool] | Site
Tie = Literal["batch", "one-event"]
TIES: tuple[Tie, ...] = ("batch", "one-event")
#: Of the fast kernels, which count processors in 32 bits.
_MOST_PROCS = 2**31 - 2
#: Pool rules that read deadlines.
_BY_DEADLINE = (codes.BURST, codes.PACK)
#: The only rules under which a selector plays; those that know promises also play with backfill ``promise``.
_SELECTOR_RULES = {"backfill": "easy", "estimates": "user", "kill": False, "tie": "batch", "weights": None}


class RuleArguments(TypedDict, total=False):
    """The rules of a replay beside its strategy; ``DEFAULT_RULES`` has what is used where one is left out.

    ``backfill``, ``estimates`` and ``pool_rule`` are names of the catalog. ``kill``: jobs end at their wall limit, the
    user's estimate. ``tie``: ``batch``, where all that happens at one time comes before one pass, or ``one-event``,
    with a pass after each event, arrivals first. ``slack`` of backfill ``promise``: how much later than planned at
    submission a job may start, such as ``24h+4e+1wait`` (the default); of backfill ``slack``:
    the share of its estimate by which the head may be delayed (by default 0.5). ``quantile``: of estimates
    ``quantile``. ``wait_usd_per_hour`` (of pool rule ``burst``): what an hour less of waiting is worth. ``weights``: of
    strategy ``multifactor``. ``as_steered``: on a site, play what steering its Slurm can do, with a look at the queue
    every so often, such as ``30s``.
    """

    backfill: str
    estimates: str
    pool_rule: str
    kill: bool
    tie: Tie
    slack: float | str | None
    quantile: float
    wait_usd_per_hour: float
    weights: PriorityWeights | None
    as_steered: str | None


DEFAULT_RULES = RuleArguments(
    backfill="easy",
    estimates="user",
    pool_rule="cheapest",
    kill=False,
    tie="batch",
    slack=None,
    quantile=0.9,
    wait_usd_per_hour=1.0,
    weights=None,
    as_steered=None,
)


def replay(
    trace: Trace, machine: Machine, *, strategy: StrategyLike = "fcfs", seed: int = 0, **rules: Unpack[RuleArguments]
) -> QueueResult:
    """Replay a trace and return what happened.

    Parameters
    ----------
    machine
        A number of processors, pools, or a site with nodes and partitions. On plain processors and on sites, jobs
        without a run time and jobs that do not fit are left out, and without ``kill`` estimates below the run time are
        raised to it.
    strategy
        A name of the catalog or of a plugin (``recorded``: as it really was), a row of ``queues.strategies``, or a
        function that returns a number per job, the lowest first: ``key(jobs)`` is called once, ``key(jobs, wait_s)`` at
        every pass, which is slow.
    seed
        For interruptions of spot pools, and for selectors.
    """
    return replay_told(trace, machine, strategy=strategy, seed=seed, **rules)[0]


def replay_told(
    trace: Trace,
    machine: Machine,
    *,
    strategy: StrategyLike = "fcfs",
    seed: int = 0,
    settings: SelectorSettings | None = None,
    run: Run | None = None,
    watch: Watch | None = None,
    **rules: Unpack[RuleArguments],
) -> tuple[QueueResult, SelectorReplay | None]:
    """Replay a trace, and also return what a selector tells of it, None for a fixed strategy.

    Parameters
    ----------
    settings
        Of a selector.
    run
        Where a selector that can do so records what it chooses, during the replay.
    watch
        Told during the replay, by a selector that can do so, how many jobs of how many have arrived; False stops it.
    """
    if strategy == RECORDED:
        return recorded_result(trace, machine), None
    found = strategy_of(strategy)
    name = name_of_strategy(strategy)
    if rules.get("as_steered") is not None:
        from stretto.queues.nodes.slurm_model.steered import steered_by_rules

        return steered_by_rules(trace, machine, name, rules), None
    if isinstance(found, StrategySelector):
        return _replay_selector(trace, machine, name, seed, settings, run, watch, rules)
    if settings is not None:
        raise InvalidInput(f"{name!r} has no settings; they are for {' and '.join(SELECTORS)}", field="settings")
    if isinstance(machine, Site):
        from stretto.queues.nodes.replay import replay_site

        make_rules(found if isinstance(found, Strategy) else DEADLINE, **rules)  # raises where a rule is wrong
        return replay_site(trace, machine, found, rules, _spec(name, seed, rules)), None
    if isinstance(found, Strategy):
        return _replay_order(trace, machine, found, name, seed, rules), None
    return _replay_key(trace, machine, found, name, seed, rules), None


def _replay_order(
    trace: Trace, machine: int | Sequence[Pool], order: Strategy, name: str, seed: int, rules: RuleArguments
) -> QueueResult:
    """Replay by a kernel."""
    setup = _setup(trace, machine, make_rules(order, **rules), seed, rules.get("slack"))
    return to_result(setup, run_setup(setup), _spec(name, seed, rules))


def _replay_key(
    trace: Trace, machine: int | Sequence[Pool], key: KeyFunction, name: str, seed: int, rules: RuleArguments
) -> QueueResult:
    """Replay in the order of a key function: by a kernel where the key does not change, by the reference otherwise."""
    from stretto.queues.reference.keyed import KeyedReplay

    setup = _setup(trace, machine, make_rules(DEADLINE, **rules), seed, rules.get("slack"))
    spec = _spec(name, seed, rules)
    origin_s = float(trace.submit_s[int(np.argmax(runnable(trace, machine)))])  # a key may depend on the time of day
    if takes_wait(key) and setup.rules.backfill == codes.PROMISE:
        return to_result(setup, run_setup(setup, KeyedOrder(setup, cast("WaitKey", key), name, origin_s)), spec)
    if takes_wait(key):
        slow = KeyedReplay(setup, cast("WaitKey", key), name, origin_s)
    elif len(setup.pools) > 1 and setup.rules.pool_rule in _BY_DEADLINE:
        if setup.rules.backfill == codes.PROMISE:
            message = f"with a key of your own works with other pool rules than {rules.get('pool_rule')!r}"
            raise InvalidInput(message, field="backfill promise")
        slow = KeyedReplay(setup, lambda jobs, wait_s: cast("PlainKey", key)(jobs), name, origin_s)
    else:
        # The kernels know one order by a number that comes with the job: its deadline. The key takes its place.
        jobs = submitted(setup.trace)
        jobs.submit_s[:] += origin_s
        fixed = checked_key(cast("PlainKey", key)(jobs), len(jobs.submit_s), name)
        own = replaced(setup, jobs=setup.jobs._replace(deadline=fixed))
        return to_result(setup, run_setup(own), spec)
    _check(setup, slow.out, slow.run())
    return to_result(setup, slow.out, spec)


def _replay_selector(
    trace: Trace,
    machine: Machine,
    name: str,
    seed: int,
    settings: SelectorSettings | None,
    run: Run | None,
    watch: Watch | None,
    rules: RuleArguments,
) -> tuple[QueueResult, SelectorReplay]:
    """Replay by a selector."""
    check_rules(name, **rules)
    slack = slack_table(rules.get("slack")) if rules.get("backfill") == "promise" else None
    needed: dict[str, object] = {part: value for part, value in _SELECTOR_RULES.items() if value is not None}
    if slack is not None:
        needed |= {"backfill": "promise", "slack": str(slack)}
    spec = {"strategy": name, **needed, **({} if settings is None else settings.spec()), "seed": seed}
    if isinstance(machine, Site) and name == "portfolio" and settings is None:
        from stretto.queues.nodes.portfolio import portfolio_on_site

        return portfolio_on_site(trace, machine, spec=_spec(name, seed, rules))
    if isinstance(machine, Site) and name == "mars":
        from stretto.queues.mars.site import mars_on_site

        said = cast("MarsSettings | None", settings)
        return mars_on_site(trace, machine, settings=said, slack=slack, run=run, watch=watch, seed=seed, spec=spec)
    if isinstance(machine, Site):
        message = f"strategy {name!r} works on one plain machine: give its number of processors instead"
        raise InvalidInput(message, field="site")
    if not isinstance(machine, int):
        from stretto.queues.mars.pool_select import select_in_pools

        base, told = (
            make_rules("fcfs", **rules),
            _spec(name, seed, rules) | ({} if settings is None else settings.spec()),
        )
        return select_in_pools(trace, machine, base, told, slack=slack, settings=settings, run=run, watch=watch)
    select = lookup("selector", name, SELECTOR_REPLAYS)
    known = inspect.signature(select).parameters
    if settings is not None and "settings" not in known:
        raise InvalidInput(f"{name!r} has no settings", field="settings")
    wanted = {"settings": settings, "run": run, "watch": watch, "slack": slack}
    found: SelectorReplay = select(
        trace, machine, seed=seed, **{part: value for part, value in wanted.items() if part in known}
    )
    due = getattr(found, "due_s", None) if slack is not None else None
    notes = notes_of(trace, machine, trace.fits(machine))
    return plain_result(found.trace, machine, found.start_s, found.num_dropped, due, spec, notes), found


def knows_promises(selector: str) -> bool:
    """Say whether a selector also plays with backfill ``promise``."""
    return "slack" in inspect.signature(lookup("selector", selector, SELECTOR_REPLAYS)).parameters


def check_rules(strategy: StrategyLike, **rules: Any) -> None:
    """Raise where a name is unknown, a value out of range, or a selector does not support the rules."""
    if not isinstance(strategy, str):
        make_rules("fcfs", **rules)
        return
    lookup("strategy", strategy, STRATEGIES | SELECTORS | RECORDS)
    make_rules(strategy if strategy in STRATEGIES else "fcfs", **rules)
    if strategy in SELECTORS:
        for name, needed in _SELECTOR_RULES.items():
            if name == "backfill" and rules.get(name) == "promise" and knows_promises(strategy):
                continue
            if rules.get(name, needed) != needed:
                message = f"strategy {strategy!r} works only with {needed!r}, not with {rules[name]!r}"
                raise InvalidInput(message, field=name)


def can_select(trace: Trace, machine: Machine, **rules: Unpack[RuleArguments]) -> bool:
    """Say whether selectors can replay a trace: on one machine or in pools, by their rules, without dependencies."""
    has_parents = trace.parent is not None and len(trace.parent) > 0
    as_needed = all(rules.get(name, needed) == needed for name, needed in _SELECTOR_RULES.items())
    return not isinstance(machine, Site) and not has_parents and as_needed


def can_be_watched(strategy: StrategyLike) -> bool:
    """Say whether a strategy tells during a replay how far it is, and can be stopped there."""
    if not isinstance(strategy, str) or strategy not in SELECTORS:
        return False
    return "watch" in inspect.signature(lookup("selector", strategy, SELECTOR_REPLAYS)).parameters


def make_rules(strategy: str | Strategy, **given: Unpack[RuleArguments]) -> codes.RuleCodes:
    """Return the rules of a replay as numbers; raise where a name is unknown or a value out of range."""
    order: Strategy = lookup("strategy", strategy, STRATEGIES) if isinstance(strategy, str) else strategy
    unknown = next((name for name in given if name not in DEFAULT_RULES), None)
    if unknown is not None:
        raise UnknownName("rule of a replay", unknown, DEFAULT_RULES)
    rules: RuleArguments = {**DEFAULT_RULES, **given}
    quantile, wait = rules["quantile"], rules["wait_usd_per_hour"]
    backfill = lookup("backfill", rules["backfill"], BACKFILLS).code
    slack = slack_rule(backfill, rules["slack"])
    if rules["tie"] not in TIES:
        raise UnknownName("tie order", str(rules["tie"]), TIES)
    if rules["weights"] is not None and not order.uses_weights:
        raise InvalidInput(f"strategy {name_of_strategy(strategy)!r} has no weights", field="weights")
    if not 0 < quantile <= 1:
        raise InvalidInput(f"{quantile} is not in (0, 1]", field="quantile")
    if not (wait >= 0 and math.isfinite(wait)):
        raise InvalidInput(f"{wait} must be finite and not negative", field="wait_usd_per_hour")
    weights = rules["weights"] or PriorityWeights()
    return codes.RuleCodes(
        strategy=order.code,
        backfill=backfill,
        estimates=lookup("estimate model", rules["estimates"], ESTIMATES).code,
        pool_rule=lookup("pool rule", rules["pool_rule"], POOL_RULES).code,
        kill=bool(rules["kill"]),
        one_event=rules["tie"] == "one-event",
        slack=slack.share,
        slack_s=slack.time_s,
        slack_wait=slack.wait_share,
        quantile=float(quantile),
        wait_usd_per_hour=float(wait),
        age=float(weights.age),
        size=float(weights.size),
        fair_share=float(weights.fair_share),
        max_age=float(weights.max_age_s),
        half_life=float(weights.half_life_s),
    )


def _setup(
    trace: Trace,
    machine: int | Sequence[Pool],
    rules: codes.RuleCodes,
    seed: int,
    slack: float | str | None = None,
) -> ReplaySetup:
    if seed < 0:
        raise InvalidInput(f"{seed} must not be negative", field="seed")
    setup = prepare(trace, machine if isinstance(machine, int) else tuple(machine), rules, seed)
    if rules.backfill != codes.PROMISE or not slack_table(slack).rows:
        return setup
    jobs = trace.keep(runnable(trace, machine))
    return replaced(setup, slack_s=slack_table(slack).of(jobs, setup.jobs.estimate))


def setup_of(
    trace: Trace,
    machine: Machine,
    *,
    strategy: StrategyLike = "fcfs",
    seed: int = 0,
    settings: SelectorSettings | None = None,
    **rules: Unpack[RuleArguments],
) -> tuple[ReplaySetup, dict[str, object]]:
    """Return a replay by a fixed order that is ready to run, and its rules by name and value."""
    order, name = strategy_of(strategy), name_of_strategy(strategy)
    if not isinstance(order, Strategy) or settings is not None:
        message = f"strategy {name!r} is no fixed order; use one such as fcfs, sjf or saf"
        raise InvalidInput(message, field="strategy")
    if isinstance(machine, Site):
        message = "a site cannot be calibrated: give the number of processors with --procs, or leave --calibrate out"
        raise InvalidInput(message, field="calibrate")
    return _setup(trace, machine, make_rules(order, **rules), seed, rules.get("slack")), _spec(name, seed, rules)


def _spec(name: str, seed: int, given: RuleArguments) -> dict[str, object]:
    """Return the rules by name and value, as results carry them."""
    rules = {rule: value for rule, value in {**DEFAULT_RULES, **given}.items() if rule != "weights"}
    code = lookup("backfill", str(rules["backfill"]), BACKFILLS).code
    slack = cast("float | str | None", rules["slack"])
    rules["slack"] = str(slack_table(slack)) if code == codes.PROMISE else slack_rule(code, slack).share
    return {"strategy": name, **rules, "seed": seed}


def run_setup(setup: ReplaySetup, key: KeyedOrder | None = None) -> ReplayOutcome:
    """Run the fastest kernel that can do it; ``key`` (of backfill ``promise``) is called at every event."""
    out = new_outcome(setup.trace.num_jobs, len(setup.pools))
    if setup.rules.backfill == codes.PROMISE:
        fill_promised(setup, out, key)
        if setup.is_one_machine:
            _bill(setup.pools[0], float(out.end.max()), out)
        return out
    if _is_fast(setup):
        rules, pool = setup.rules, setup.pools[0]
        if rules.backfill == codes.CONSERVATIVE:
            run_conservative(setup.jobs, pool.num_procs, rules.strategy, out.start)
        else:
            easy = rules.backfill == codes.EASY
            run_queue(setup.jobs, pool.num_procs, rules.strategy, easy, rules.one_event, out.start)
        np.add(out.start, setup.jobs.run, out=out.end)
        out.ready[:] = setup.jobs.submit
        _bill(pool, float(out.end.max()), out)
        return out
    pools = setup.pool_arrays()
    state = new_state(setup.jobs, pools, setup.rules)
    _check(setup, out, run_general(setup.jobs, pools, setup.rules, setup.limit, setup.draws, state, out))
    return out


def _check(setup: ReplaySetup, out: ReplayOutcome, status: int) -> None:
    """Raise where jobs wait for what never comes."""
    if status == codes.STUCK:
        job = int(np.argmax(out.end < 0))
        raise Infeasible(f"job {job} of {setup.trace.name!r} waits for ever: the pools that it fits stay closed")


def _is_fast(setup: ReplaySetup) -> bool:
    """Say whether the fast kernels can do it: one plain machine, and jobs that run for some time."""
    rules, jobs = setup.rules, setup.jobs
    if (
        not setup.is_plain
        or setup.pools[0].num_procs > _MOST_PROCS
        or rules.kill
        or rules.estimates not in (codes.USER, codes.PERFECT)
        or rules.strategy == codes.MULTIFACTOR
        or not bool(np.all(jobs.run > 0))
    ):
        return False
    if rules.backfill == codes.CONSERVATIVE:  # its plan needs estimates that no job outlives
        return not rules.one_event and bool(np.all(jobs.estimate >= jobs.run))
    return rules.backfill in (codes.NONE, codes.EASY)


def _bill(pool: Pool, end_s: float, out: ReplayOutcome) -> None:
    """Pay all nodes of a pool of fixed size from zero to the end."""
    paid_s = math.ceil(end_s / pool.billing_s) * pool.billing_s
    out.node_s[0] = paid_s * pool.num_nodes
    out.usd[0] = paid_s / 3600.0 * pool.price_usd_per_hour * pool.num_nodes


def to_result(setup: ReplaySetup, out: ReplayOutcome, spec: dict[str, object]) -> QueueResult:
    """Name what a kernel left behind."""
    return QueueResult(
        trace=setup.trace,
        pools=setup.pools,
        start_s=out.start,
        end_s=out.end,
        ready_s=out.ready,
        pool=out.pool,
        is_killed=out.killed,
        num_interruptions=out.interruptions,
        cost_usd=out.usd,
        billed_node_s=out.node_s,
        num_dropped=setup.num_dropped,
        due_s=out.due if setup.rules.backfill == codes.PROMISE else None,
        margin_s=out.margin if setup.rules.backfill == codes.PROMISE and not setup.is_one_machine else None,
        spec=spec,
        notes=setup.notes,
    )
