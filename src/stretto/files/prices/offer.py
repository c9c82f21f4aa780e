"""An offer: one type of machine in one place at a price; finding offers, and pools of them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase

from stretto.core.pool import Pool, Spot
from stretto.errors import InvalidInput, UnknownName

GIB = 2.0**30


@dataclass(frozen=True, slots=True)
class Offer:
    """A machine that can be rented.

    Attributes
    ----------
    instance_type
        Empty for accelerators that are sold on their own, to be attached to a machine.
    num_accelerators
        Some providers rent fractions of a GPU.
    zone
        Empty where the price holds for the whole region.
    price_usd_per_hour, spot_price_usd_per_hour
        None where the machine is not offered that way; catalogues also write zero for that.
    """

    provider: str
    instance_type: str
    num_vcpus: float
    memory_bytes: float
    accelerator: str | None
    num_accelerators: float
    region: str
    zone: str
    price_usd_per_hour: float | None
    spot_price_usd_per_hour: float | None

    def price(self, *, spot: bool = False) -> float | None:
        """Return the price on demand, or that of the spot market."""
        return self.spot_price_usd_per_hour if spot else self.price_usd_per_hour

    @property
    def place(self) -> str:
        return self.zone or self.region


def find_offers(
    offers: Iterable[Offer],
    *,
    min_procs: int = 1,
    min_memory_bytes: float = 0.0,
    gpu: str | None = None,
    min_gpus: float = 1.0,
    provider: str | None = None,
    region: str | None = None,
    max_price_usd_per_hour: float = float("inf"),
    spot: bool = False,
) -> list[Offer]:
    """Return the machines that do, the cheapest first; equal prices in the order of names and places.

    Parameters
    ----------
    gpu
        The name of an accelerator, in any case; None asks for none and refuses none.
    region
        A region or a zone; ``*`` stands for anything, as in ``us-*``.
    spot
        Whether prices are those of the spot market.
    """
    machines = [offer for offer in offers if offer.num_vcpus > 0]
    if provider is not None:
        machines = _named(machines, provider, "provider", [offer.provider for offer in machines])
    if gpu is not None:
        machines = _named(machines, gpu, "accelerator", [offer.accelerator or "" for offer in machines])
        machines = [offer for offer in machines if offer.num_accelerators >= min_gpus]
    if region is not None:
        machines = _in_region(machines, region)
    found = [
        (price, offer.provider, offer.instance_type, offer.region, offer.zone, offer)
        for offer in machines
        if offer.num_vcpus >= min_procs
        and offer.memory_bytes >= min_memory_bytes
        and (price := offer.price(spot=spot)) is not None
        and price <= max_price_usd_per_hour
    ]
    found.sort(key=lambda entry: entry[:5])
    return [entry[5] for entry in found]


def _named(machines: list[Offer], name: str, what: str, names: Sequence[str]) -> list[Offer]:
    """Return the machines with this name; one that nobody has is a mistake, not an empty answer."""
    wanted = name.casefold()
    found = [offer for offer, own in zip(machines, names, strict=True) if own.casefold() == wanted]
    if not found:
        raise UnknownName(what, name, set(names) - {""})
    return found


def _in_region(machines: list[Offer], region: str) -> list[Offer]:
    found = [offer for offer in machines if fnmatchcase(offer.region, region) or fnmatchcase(offer.zone, region)]
    if not found and machines:
        raise UnknownName("region", region, {offer.region for offer in machines})
    return found


def pool_of(
    offer: Offer,
    num_nodes: int,
    spot: Spot | None = None,
    *,
    name: str | None = None,
    min_nodes: int | None = None,
    speed: float = 1.0,
    provision_s: float = 0.0,
    billing_s: float = 1.0,
    idle_shutdown_s: float = float("inf"),
) -> Pool:
    """Return a pool of such machines, on demand, or on the spot market when that is given.

    Parts of processors and of GPUs are not counted: a job cannot have them whole.
    """
    if offer.num_vcpus < 1:
        raise InvalidInput(
            f"{offer.num_vcpus:g} processors are not a machine", field=offer.instance_type or offer.accelerator
        )
    price = offer.price_usd_per_hour
    if price is None:
        if spot is None:
            raise InvalidInput("is not offered on demand; give its spot prices", field=offer.instance_type)
        price = float(spot.price_usd_per_hour[0])
    return Pool(
        name or f"{offer.provider}/{offer.instance_type}@{offer.place}",
        num_nodes,
        procs_per_node=int(offer.num_vcpus),
        gpus_per_node=int(offer.num_accelerators),
        memory_bytes_per_node=offer.memory_bytes,
        speed=speed,
        price_usd_per_hour=price,
        billing_s=billing_s,
        provision_s=provision_s,
        min_nodes=min_nodes,
        idle_shutdown_s=idle_shutdown_s,
        spot=spot,
    )
