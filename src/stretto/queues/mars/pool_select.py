"""Selectors in pools, by name."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, cast

from stretto.core.pool import Pool
from stretto.core.trace import Trace
from stretto.errors import InvalidInput
from stretto.queues.kernels.codes import RuleCodes
from stretto.queues.promises.slack import SlackTable
from stretto.queues.result import QueueResult, Watch
from stretto.queues.selected import SelectorReplay, SelectorSettings
from stretto.runlog import Run

if TYPE_CHECKING:
    from stretto.queues.mars.replay import MarsSettings


def select_in_pools(
    trace: Trace,
    pools: Sequence[Pool],
    base: RuleCodes,
    spec: dict[str, object],
    *,
    slack: SlackTable | None,
    settings: SelectorSettings | None,
    run: Run | None,
    watch: Watch | None,
) -> tuple[QueueResult, SelectorReplay]:
    """Replay by a selector that chooses pairs of an order and a pool rule; ``spec`` names it, and the rules."""
    name, pool_rule, seed = str(spec["strategy"]), str(spec["pool_rule"]), int(cast("int", spec["seed"]))
    if name == "mars":
        from stretto.queues.mars.pools import mars_in_pools

        said = cast("MarsSettings | None", settings)
        return mars_in_pools(
            *(trace, pools, base),
            pool_rule=pool_rule,
            settings=said,
            slack=slack,
            run=run,
            watch=watch,
            seed=seed,
            spec=spec,
        )
    if name == "portfolio" and settings is None:
        from stretto.queues.mars.pool_portfolio import portfolio_in_pools

        return portfolio_in_pools(trace, pools, base, pool_rule=pool_rule, seed=seed, spec=spec)
    message = f"strategy {name!r} works on one plain machine: give its number of processors instead"
    raise InvalidInput(message, field="pools")
