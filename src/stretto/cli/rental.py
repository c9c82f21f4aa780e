"""A plan on pools in the terminal: how it stands to its limits, what is rented when, and what that costs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stretto.cli.console import facts, new_table, print_tables
from stretto.core.units import format_count, format_percent, format_wait

if TYPE_CHECKING:
    from rich.table import Table

    from stretto.graphs.rental.billing import Rental
    from stretto.graphs.rental.result import RentalPlan

#: Rentals that are shown; all are in the JSON.
_SHOWN = 30


def print_rental(found: RentalPlan) -> None:
    """Print a plan on pools."""
    problem = found.problem
    owned = [node for node in found.fleet.nodes if node.market == "owned"]
    nodes = {one.node for one in found.rentals}
    rows = {
        "graph": f"{format_count(problem.num_tasks, 'task')}, {format_count(problem.graph.num_edges, 'edge')}",
        "nodes": f"{len(owned):,} owned, {len(nodes):,} rented",
        "executed": f"{found.schedule.discipline}, contention {found.schedule.contention}",
        "makespan": format_wait(found.makespan_s),
        "cost": f"${found.cost_usd:,.4f}",
        "planned by": f"{found.policy}, the best of {format_count(len(found.tried), 'plan')} that were simulated",
    }
    if found.reserve is not None:
        rows["expected cost"] = (
            f"${found.best.expected_usd:,.4f} (spot lost with {format_percent(found.reserve.loss_probability)})"
        )
    tables = [_table(found.rentals[:_SHOWN])] if found.rentals else []
    print_tables(facts(f"{problem.graph.name} on pools", rows), *tables)
    if len(found.rentals) > _SHOWN:
        print(f"{_SHOWN} of {len(found.rentals):,} rentals; --output json has all")


def print_rented_run(rentals: tuple[Rental, ...], planned_usd: float) -> None:
    """Print the rented nodes of a run, by the times that were."""
    print_tables(_table(rentals[:_SHOWN], "Rented nodes, by the times of this run"))
    total = sum(one.cost_usd for one in rentals)
    print(f"costs ${total:,.4f} by these times; ${planned_usd:,.4f} were planned")


def _table(shown: tuple[Rental, ...], title: str = "Rented nodes") -> Table:
    table = new_table(title)
    table.add_column("node", overflow="fold")
    for column in ("tasks", "request at", "up from", "to", "billed", "cost"):
        table.add_column(column, justify="right", no_wrap=True)
    for one in shown:
        times = (format_wait(value) for value in (one.request_s, one.start_s, one.end_s, one.billed_s))
        table.add_row(one.node, f"{one.num_tasks:,}", *times, f"${one.cost_usd:,.4f}")
    return table
