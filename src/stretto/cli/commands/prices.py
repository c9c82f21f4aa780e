"""``stretto prices``: offers of cloud machines, and pools of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from stretto.cli.applicable import refuse_without
from stretto.cli.options import OutputOption
from stretto.cli.terminal.console import Output, new_table, print_json, remark, stdout

if TYPE_CHECKING:
    from stretto.core.pool import Spot
    from stretto.files.prices.offer import Offer

prices = typer.Typer(
    help="Find offers of cloud machines in a price list, and write them as pools.",
    rich_markup_mode=None,
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"]},
)

CatalogueArgument = Annotated[
    str,
    typer.Argument(
        metavar="CATALOGUE",
        help="A price list: SkyPilot's tar or CSV, ec2instances.info in JSON, or Google's in YAML; gzip is unpacked.",
        show_default=False,
    ),
]
GpuOption = Annotated[str | None, typer.Option("--gpu", metavar="NAME", help="An accelerator such as A100 or T4.")]
GpusOption = Annotated[float, typer.Option("--gpus", metavar="N", help="At least so many of them.")]
ProcsOption = Annotated[int, typer.Option("--procs", metavar="N", help="At least so many processors.")]
MemoryOption = Annotated[str, typer.Option("--memory", metavar="SIZE", help="At least so much, such as 64GB.")]
ProviderOption = Annotated[str | None, typer.Option("--provider", metavar="NAME", help="Such as aws, azure or gcp.")]
RegionOption = Annotated[
    str | None, typer.Option("--region", metavar="NAME", help="A region or zone; * stands for anything, as in us-*.")
]
MaxPriceOption = Annotated[float, typer.Option("--max-price", metavar="USD", help="Per hour.", show_default="any")]


@prices.command("list")
def list_offers(
    context: typer.Context,
    catalogue: CatalogueArgument,
    gpu: GpuOption = None,
    gpus: GpusOption = 1.0,
    procs: ProcsOption = 1,
    memory: MemoryOption = "0",
    provider: ProviderOption = None,
    region: RegionOption = None,
    max_price: MaxPriceOption = float("inf"),
    spot: Annotated[bool, typer.Option("--spot", help="Prices of the spot market.")] = False,
    limit: Annotated[int, typer.Option("--limit", metavar="N", min=0, help="Show so many; 0 = all.")] = 20,
    output: OutputOption = Output.TABLE,
) -> None:
    """List the offers that do, the cheapest first."""
    if gpu is None:
        refuse_without(context, "--gpu", ("gpus",))
    found = _find(catalogue, gpu, gpus, procs, memory, provider, region, max_price, spot)
    shown = found[:limit] if limit else found
    if output is Output.JSON:
        print_json({"num_offers": len(found), "offers": [_entry(offer) for offer in shown]})
    elif output is Output.QUIET:
        print("\n".join(f"{offer.provider}/{offer.instance_type}@{offer.place}" for offer in shown))
    else:
        _print_offers(shown, len(found), spot)


@prices.command("pool")
def pool_offer(
    context: typer.Context,
    catalogue: CatalogueArgument,
    nodes: Annotated[
        str, typer.Option("--nodes", metavar="[LEAST-]MOST", help="Nodes of the pool; with LEAST it is elastic.")
    ] = "1",
    instance: Annotated[
        str | None, typer.Option("--instance", metavar="TYPE", help="This type; otherwise the cheapest that does.")
    ] = None,
    gpu: GpuOption = None,
    gpus: GpusOption = 1.0,
    procs: ProcsOption = 1,
    memory: MemoryOption = "0",
    provider: ProviderOption = None,
    region: RegionOption = None,
    max_price: MaxPriceOption = float("inf"),
    spot_series: Annotated[
        str | None, typer.Option("--spot-series", metavar="FILE", help="Buy on the spot market at the prices of a CSV.")
    ] = None,
    bid: Annotated[float, typer.Option("--bid", metavar="USD", help="Of the spot market.", show_default="any")] = float(
        "inf"
    ),
    hazard: Annotated[
        float, typer.Option("--hazard", metavar="P", help="Of the spot market: interruptions per node-hour.")
    ] = 0.0,
    checkpoint: Annotated[
        str | None, typer.Option("--checkpoint", metavar="TIME", help="Jobs keep their work this often.")
    ] = None,
    start: Annotated[
        str | None, typer.Option("--start", metavar="DATE", help="Where in the spot series time begins.")
    ] = None,
    speed: Annotated[float, typer.Option("--speed", metavar="X", help="Run times are divided by it.")] = 1.0,
    provision: Annotated[str, typer.Option("--provision", metavar="TIME", help="A new node takes so long.")] = "0s",
    billing: Annotated[str, typer.Option("--billing", metavar="TIME", help="Each begun one is paid.")] = "1s",
    idle_shutdown: Annotated[
        str | None, typer.Option("--idle-shutdown", metavar="TIME", help="Idle nodes go after this.")
    ] = None,
    name: Annotated[str | None, typer.Option("--name", metavar="NAME", help="Of the pool.")] = None,
) -> None:
    """Print an offer as a pool file, for stretto replay --pools."""
    import sys

    from stretto.files.clusters.pool_toml import write_pools
    from stretto.files.prices.offer import pool_of

    if gpu is None:
        refuse_without(context, "--gpu", ("gpus",))
    if spot_series is None:
        refuse_without(context, "--spot-series", ("bid", "hazard", "checkpoint", "start"))
    least, most = _nodes(nodes)
    # On the spot market the series has the prices: the catalogue need not offer the machine that way.
    found = _find(catalogue, gpu, gpus, procs, memory, provider, region, max_price, spot=False)
    offer = _chosen(found, instance)
    market = _market(offer, spot_series, region, bid, hazard, checkpoint, start) if spot_series is not None else None
    pool = pool_of(
        offer,
        most,
        market,
        name=name,
        min_nodes=least,
        speed=speed,
        provision_s=_seconds(provision, "--provision"),
        billing_s=_seconds(billing, "--billing"),
        idle_shutdown_s=_seconds(idle_shutdown, "--idle-shutdown") if idle_shutdown is not None else float("inf"),
    )
    sys.stdout.write(write_pools([pool]).decode())


def _find(
    catalogue: str,
    gpu: str | None,
    gpus: float,
    procs: int,
    memory: str,
    provider: str | None,
    region: str | None,
    max_price: float,
    spot: bool,
) -> list[Offer]:
    from stretto.cli.terminal.progress import ProgressLine
    from stretto.core.units import parse_bytes, stating_unit
    from stretto.errors import InvalidInput
    from stretto.files.prices.catalogue import read_catalogue
    from stretto.files.prices.offer import find_offers

    least_bytes = parse_bytes(stating_unit(memory, field="--memory", units=("GB", "GiB")))
    with ProgressLine(f"reading {catalogue}"):
        offers = read_catalogue(catalogue)
    found = find_offers(
        offers,
        min_procs=procs,
        min_memory_bytes=least_bytes,
        gpu=gpu,
        min_gpus=gpus,
        provider=provider,
        region=region,
        max_price_usd_per_hour=max_price,
        spot=spot,
    )
    if not found:
        raise InvalidInput("no offer has all that was asked for", source=catalogue)
    return found


def _seconds(text: str, option: str) -> float:
    from stretto.core.units import parse_seconds, stating_unit

    return parse_seconds(stating_unit(text, field=option, units=("s", "min", "h")))


def _nodes(text: str) -> tuple[int | None, int]:
    from stretto.errors import InvalidInput

    least, dash, most = text.rpartition("-")
    if not most.isdecimal() or (dash and not least.isdecimal()):
        raise InvalidInput(f"{text!r} is not a number of nodes such as 16, or 0-16", field="--nodes")
    return (int(least) if dash else None), int(most)


def _chosen(found: list[Offer], instance: str | None) -> Offer:
    from stretto.errors import UnknownName

    if instance is None:
        return found[0]
    for offer in found:
        if offer.instance_type == instance:
            return offer
    raise UnknownName("instance type", instance, {offer.instance_type for offer in found})


def _market(
    offer: Offer,
    series: str,
    region: str | None,
    bid: float,
    hazard: float,
    checkpoint: str | None,
    start: str | None,
) -> Spot:
    from stretto.files.prices.spot_series import spot_series

    where = region if region is not None and "*" not in region else offer.region
    is_zone = bool(offer.zone) and where == offer.zone
    return spot_series(
        series,
        offer.instance_type,
        region=None if is_zone else where,
        zone=where if is_zone else None,
        start=start,
        hazard_per_hour=hazard,
        bid_usd_per_hour=bid,
        checkpoint_s=_seconds(checkpoint, "--checkpoint") if checkpoint is not None else float("inf"),
    )


def _entry(offer: Offer) -> dict[str, Any]:
    return {
        "provider": offer.provider,
        "instance_type": offer.instance_type,
        "num_procs": offer.num_vcpus,
        "memory_bytes": offer.memory_bytes,
        "accelerator": offer.accelerator,
        "num_accelerators": offer.num_accelerators,
        "region": offer.region,
        "zone": offer.zone or None,
        "price_usd_per_hour": offer.price_usd_per_hour,
        "spot_price_usd_per_hour": offer.spot_price_usd_per_hour,
    }


def _print_offers(shown: list[Offer], total: int, spot: bool) -> None:
    from stretto.core.units import format_bytes

    table = new_table()
    for column, justify in (("provider", "left"), ("machine", "left"), ("place", "left")):
        table.add_column(column, justify=justify, overflow="fold")  # type: ignore[arg-type]
    for column in ("procs", "memory", "accelerator", "USD/h spot" if spot else "USD/h"):
        table.add_column(column, justify="right", no_wrap=True)
    for offer in shown:
        accelerator = f"{offer.num_accelerators:g} {offer.accelerator}" if offer.accelerator else "-"
        table.add_row(
            offer.provider,
            offer.instance_type,
            offer.place,
            f"{offer.num_vcpus:g}",
            format_bytes(offer.memory_bytes),
            accelerator,
            f"{offer.price(spot=spot):.4f}",
        )
    stdout().print(table)
    if len(shown) < total:
        remark(f"{len(shown)} of {total:,} offers; --limit 0 shows all")
