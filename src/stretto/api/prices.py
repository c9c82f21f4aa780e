"""``stretto.find_offers`` and ``stretto.pool_of_offer``: cloud machines in a price list, and pools of them."""

from __future__ import annotations

from pathlib import Path

from stretto.api.options import OfferFilter, PoolShape, SpotOptions
from stretto.core.pool import Pool
from stretto.core.units import parse_bytes, stating_unit
from stretto.errors import InvalidInput, UnknownName
from stretto.files.clusters.pool_toml import write_pools
from stretto.files.prices.catalogue import read_catalogue
from stretto.files.prices.offer import Offer
from stretto.files.prices.offer import find_offers as matching_offers


def find_offers(catalogue: str | Path, wanted: OfferFilter | None = None, *, spot: bool = False) -> list[Offer]:
    """Return the offers of a price list that have all that is wanted, the cheapest first.

    Parameters
    ----------
    catalogue
        SkyPilot's tar or CSV, ec2instances.info in JSON, or Google's in YAML; gzip is unpacked.
    spot
        Compare prices of the spot market.

    Examples
    --------
    >>> import stretto, tempfile, pathlib
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "aws.csv"
    >>> columns = "InstanceType,AcceleratorName,AcceleratorCount,vCPUs,MemoryGiB,Price,Region,SpotPrice"
    >>> _ = path.write_text(columns + ",AvailabilityZone\\nm5.large,,,2,8,0.096,us-east-1,0.03,us-east-1a\\n")
    >>> [offer.instance_type for offer in stretto.find_offers(path, stretto.OfferFilter(procs=2))]
    ['m5.large']
    """
    chosen = wanted or OfferFilter()
    least_bytes = parse_bytes(stating_unit(chosen.memory, field="memory", units=("GB", "GiB")))
    found = matching_offers(
        read_catalogue(str(catalogue)),
        min_procs=chosen.procs,
        min_memory_bytes=least_bytes,
        gpu=chosen.gpu,
        min_gpus=chosen.gpus,
        provider=chosen.provider,
        region=chosen.region,
        max_price_usd_per_hour=chosen.max_price,
        spot=spot,
    )
    if not found:
        raise InvalidInput("no offer matches all requirements", source=str(catalogue))
    return found


def pool_of_offer(
    catalogue: str | Path,
    wanted: OfferFilter | None = None,
    *,
    instance: str | None = None,
    shape: PoolShape | None = None,
    spot: SpotOptions | None = None,
) -> Pool:
    """Return a pool of the machines of an offer, by default the cheapest that has all that is wanted.

    Examples
    --------
    >>> import stretto, tempfile, pathlib
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "aws.csv"
    >>> columns = "InstanceType,AcceleratorName,AcceleratorCount,vCPUs,MemoryGiB,Price,Region,SpotPrice"
    >>> _ = path.write_text(columns + ",AvailabilityZone\\nm5.large,,,2,8,0.096,us-east-1,0.03,us-east-1a\\n")
    >>> stretto.pool_of_offer(path, shape=stretto.PoolShape(nodes="4")).num_procs
    8
    """
    # On the spot market the series has the prices: the catalogue need not offer the machine that way.
    found = find_offers(catalogue, wanted)
    offer = found[0]
    if instance is not None:
        by_type = {one.instance_type: one for one in reversed(found)}
        if instance not in by_type:
            raise UnknownName("instance type", instance, by_type)
        offer = by_type[instance]
    market = spot.market(offer, wanted.region if wanted is not None else None) if spot is not None else None
    return (shape or PoolShape()).pool(offer, market)


def pool_file(pool: Pool) -> str:
    """Return a pool as the text of a TOML file, for ``stretto replay --pools``."""
    return write_pools([pool]).decode()
