"""``stretto plan WORKFLOW --pools FILE``: which pools to run a workflow in, in what order, and what that costs."""

from __future__ import annotations

import math
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from stretto.cli.terminal.console import Output, new_table, print_json, print_tables

if TYPE_CHECKING:
    from stretto.core.pool import Pool
    from stretto.queues.workflows.pools import Aim, Trial

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
    from stretto.cli.queue_sources import load_pools, load_queue
    from stretto.cli.terminal.progress import ProgressLine
    from stretto.core.units import parse_seconds, stating_unit
    from stretto.queues.workflows.pool_search import choose_way
    from stretto.queues.workflows.pools import Aim

    limit = None if deadline is None else stating_unit(deadline, field="--deadline", units=("s", "min", "h"))
    aim = Aim(
        objective,
        deadline_s=math.inf if limit is None else parse_seconds(limit),
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
    from stretto.core.units import format_wait, format_waits_alike

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
        table.add_row(way.strategy, rule, used, way.grouping, f"${one.cost_usd:,.2f}", makespan)
    print_tables(table)
    if not keeps:
        for line in _missed(found[0], aim):
            print(line)


def _missed(best: Trial, aim: Aim) -> list[str]:
    """Say which limits the best way breaks, and by how much."""
    from stretto.core.units import format_wait

    lines = ["no way that was tried keeps the limits; the first one is the closest:"]
    if best.num_late and best.num_workflows == 1:
        over = format_wait(best.makespan_s - aim.deadline_s)
        limit = format_wait(aim.deadline_s)
        taken = format_wait(best.makespan_s)
        if best.makespan_s > aim.deadline_s:
            lines.append(f"takes {taken}; misses the {limit} deadline by {over}")
        else:  # a mean over draws of interruptions, of which some are late
            lines.append(f"takes {taken} on average; misses the {limit} deadline in {best.num_late:.0%} of the draws")
    elif best.num_late:
        limit = format_wait(aim.deadline_s)
        lines.append(f"{best.num_late:g} of {best.num_workflows:,} workflows miss the {limit} deadline")
    if best.cost_usd > aim.budget_usd:
        over_usd = best.cost_usd - aim.budget_usd
        lines.append(f"costs ${best.cost_usd:,.2f}, ${over_usd:,.2f} more than --spend {aim.budget_usd:g}")
    return lines
