"""``stretto plan WORKFLOW --pools FILE``: which pools to run a workflow in, in what order, and what that costs."""

from __future__ import annotations

import math
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from stretto.cli.console import Output, new_table, print_json, print_tables

if TYPE_CHECKING:
    from stretto.domain.pool import Pool
    from stretto.learned.mars.pools import Aim, Trial

#: Rows that are printed of what was tried.
_SHOWN = 5
#: Ways are judged by their means over so many draws of interruptions.
_NUM_SEEDS = 3


def plan_pools(
    source: str,
    pools: str,
    *,
    objective: str,
    deadline: str | None,
    budget_usd: float | None,
    seed: int,
    output: Output,
) -> None:
    """Try ways of running a workflow in pools, and report the best."""
    from stretto.cli.progress import ProgressLine
    from stretto.cli.queue_sources import load_pools, load_queue
    from stretto.domain.units import parse_seconds
    from stretto.learned.mars.pool_search import choose_way
    from stretto.learned.mars.pools import Aim

    aim = Aim(
        objective,
        deadline_s=math.inf if deadline is None else parse_seconds(deadline),
        budget_usd=math.inf if budget_usd is None else budget_usd,
    )
    machines = load_pools(pools)
    trace = load_queue(source)
    with ProgressLine(f"trying ways to run {trace.num_jobs:,} tasks"):
        found = choose_way(trace, machines, aim, seeds=range(seed, seed + _NUM_SEEDS))
    best = found[0]
    keeps = best.num_late == 0 and best.cost_usd <= aim.budget_usd
    if output is Output.JSON:
        print_json(
            {
                "workflow": trace.name,
                "aim": {key: _plain(value) for key, value in asdict(aim).items()},
                "keeps_limits": keeps,
                "tried": [_row(one, machines) for one in found],
            }
        )
    elif output is Output.QUIET:
        print(repr(best.cost_usd))
    else:
        _print(trace.name, found, machines, aim, keeps)


def _plain(value: Any) -> Any:
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _row(one: Trial, machines: tuple[Pool, ...]) -> dict[str, Any]:
    row = {key: _plain(value) for key, value in asdict(one).items() if key != "way"}
    way = asdict(one.way) | {"pools": [machines[k].name for k in one.way.pools]}
    return way | row


def _print(name: str, found: list[Trial], machines: tuple[Pool, ...], aim: Aim, keeps: bool) -> None:
    from stretto.domain.units import format_wait, format_waits_alike

    table = new_table(f"{name}: ways to run it, best first ({len(found):,} tried)")
    for title in ("order", "pool rule", "pools", "grouping"):
        table.add_column(title)
    for title in ("cost", "time"):
        table.add_column(title, justify="right")
    shown = found[:_SHOWN]
    for one, makespan in zip(shown, format_waits_alike([one.makespan_s for one in shown]), strict=True):
        way = one.way
        rule = way.pool_rule + (f" at ${way.wait_usd_per_hour:.2g}/h" if way.is_weighing else "")
        rule += f", {way.stretch:.3g}x path" if way.stretch < math.inf else ""
        rule += f", idle {format_wait(way.idle_s)}" if way.idle_s < math.inf else ""
        used = ", ".join(machines[k].name for k in way.pools)
        late = " late" if one.num_late else ""
        table.add_row(way.strategy, rule, used, way.grouping, f"${one.cost_usd:,.2f}", makespan + late)
    print_tables(table)
    if not keeps:
        limit = "the deadline" if found[0].num_late else "the budget"
        print(f"no way that was tried keeps {limit}; this is the closest")
