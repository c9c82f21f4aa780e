"""``stretto prices``: offers of cloud machines, and pools of them."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from stretto.api.options import OfferFilter, PoolShape, SpotOptions
from stretto.cli.checks import expanded, refuse_without
from stretto.cli.console import Output, new_table, print_json, remark, stdout
from stretto.cli.options import OutputOption

if TYPE_CHECKING:
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
GpusOption = Annotated[float, typer.Option("--gpus", metavar="N", help="At least this many GPUs.")]
ProcsOption = Annotated[int, typer.Option("--procs", metavar="N", help="At least this many processors.")]
MemoryOption = Annotated[str, typer.Option("--memory", metavar="SIZE", help="At least this much memory, such as 64GB.")]
ProviderOption = Annotated[
    str | None, typer.Option("--provider", metavar="NAME", help="The provider, such as aws, azure or gcp.")
]
RegionOption = Annotated[
    str | None, typer.Option("--region", metavar="NAME", help="A region or zone; * stands for anything, as in us-*.")
]
MaxPriceOption = Annotated[
    float, typer.Option("--max-price", metavar="USD", help="Highest price per hour.", show_default="any")
]


#: What a machine must have.
WANTED = (
    OfferFilter,
    {
        "gpu": GpuOption,
        "gpus": GpusOption,
        "procs": ProcsOption,
        "memory": MemoryOption,
        "provider": ProviderOption,
        "region": RegionOption,
        "max_price": MaxPriceOption,
    },
)


@prices.command("list")
@expanded(wanted=WANTED)
def list_offers(
    context: typer.Context,
    catalogue: CatalogueArgument,
    *,
    wanted: OfferFilter,
    spot: Annotated[bool, typer.Option("--spot", help="Use prices of the spot market.")] = False,
    limit: Annotated[int, typer.Option("--limit", metavar="N", min=0, help="How many offers to show; 0 = all.")] = 20,
    output: OutputOption = Output.TABLE,
) -> None:
    """List the offers that match, the cheapest first."""
    from stretto.api import find_offers
    from stretto.cli.progress import ProgressLine

    if wanted.gpu is None:
        refuse_without(context, "--gpu", ("gpus",))
    with ProgressLine(f"reading {catalogue}"):
        found = find_offers(catalogue, wanted, spot=spot)
    shown = found[:limit] if limit else found
    if output is Output.JSON:
        print_json({"num_offers": len(found), "offers": [_entry(offer) for offer in shown]})
    elif output is Output.QUIET:
        print("\n".join(f"{offer.provider}/{offer.instance_type}@{offer.place}" for offer in shown))
    else:
        _print_offers(shown, len(found), spot)


@prices.command("pool")
@expanded(
    wanted=WANTED,
    shape=(
        PoolShape,
        {
            "nodes": Annotated[
                str,
                typer.Option(
                    "--nodes",
                    metavar="[LEAST-]MOST",
                    help="Number of nodes in the pool; with LEAST the pool is elastic.",
                ),
            ],
            "speed": Annotated[
                float, typer.Option("--speed", metavar="X", help="Speed of the nodes; run times are divided by it.")
            ],
            "provision": Annotated[
                str, typer.Option("--provision", metavar="TIME", help="How long a new node takes to start.")
            ],
            "billing": Annotated[
                str, typer.Option("--billing", metavar="TIME", help="Unit of billing; each started unit is paid.")
            ],
            "idle_shutdown": Annotated[
                str | None,
                typer.Option(
                    "--idle-shutdown", metavar="TIME", help="Release nodes that have been idle for this time."
                ),
            ],
            "name": Annotated[str | None, typer.Option("--name", metavar="NAME", help="Name of the pool.")],
        },
    ),
    spot=(
        SpotOptions,
        {
            "spot_series": Annotated[
                str | None,
                typer.Option(
                    "--spot-series", metavar="FILE", help="Use the spot market, with the prices in this CSV file."
                ),
            ],
            "bid": Annotated[
                float,
                typer.Option("--bid", metavar="USD", help="Highest price paid on the spot market.", show_default="any"),
            ],
            "hazard": Annotated[
                float, typer.Option("--hazard", metavar="P", help="Interruptions per node-hour on the spot market.")
            ],
            "checkpoint": Annotated[
                str | None, typer.Option("--checkpoint", metavar="TIME", help="Time between two checkpoints of a job.")
            ],
            "start": Annotated[
                str | None,
                typer.Option("--start", metavar="DATE", help="The date in the spot series at which time begins."),
            ],
        },
    ),
)
def pool_offer(
    context: typer.Context,
    catalogue: CatalogueArgument,
    *,
    instance: Annotated[
        str | None,
        typer.Option("--instance", metavar="TYPE", help="Instance type; by default the cheapest that matches."),
    ] = None,
    wanted: OfferFilter,
    shape: PoolShape,
    spot: SpotOptions | None,
) -> None:
    """Print an offer as a pool file, for stretto replay --pools."""
    from stretto.api import pool_of_offer
    from stretto.api.prices import pool_file
    from stretto.cli.progress import ProgressLine

    if wanted.gpu is None:
        refuse_without(context, "--gpu", ("gpus",))
    if spot is None:
        refuse_without(context, "--spot-series", ("bid", "hazard", "checkpoint", "start"))
    with ProgressLine(f"reading {catalogue}"):
        pool = pool_of_offer(catalogue, wanted, instance=instance, shape=shape, spot=spot)
    sys.stdout.write(pool_file(pool))


def _entry(offer: Offer) -> dict[str, object]:
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
