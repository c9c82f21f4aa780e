"""Machines together with accelerators that are sold on their own."""

from __future__ import annotations

from dataclasses import replace

from stretto.errors import InvalidInput
from stretto.files.prices.offer import Offer


def with_accelerator(machine: Offer, accelerator: Offer) -> Offer:
    """Return a machine together with accelerators that are sold on their own, at the sum of their prices."""
    if machine.provider != accelerator.provider or machine.place != accelerator.place:
        raise InvalidInput(
            f"{accelerator.accelerator} of {accelerator.provider} in {accelerator.place} cannot be attached to a "
            f"machine of {machine.provider} in {machine.place}",
            field="accelerator",
        )
    if accelerator.num_vcpus > 0 or machine.num_accelerators > 0:
        raise InvalidInput(
            f"{machine.instance_type} and {accelerator.instance_type or accelerator.accelerator} are not a machine "
            "without accelerators and accelerators without a machine",
            field="accelerator",
        )
    return replace(
        machine,
        accelerator=accelerator.accelerator,
        num_accelerators=accelerator.num_accelerators,
        price_usd_per_hour=_sum(machine.price_usd_per_hour, accelerator.price_usd_per_hour),
        spot_price_usd_per_hour=_sum(machine.spot_price_usd_per_hour, accelerator.spot_price_usd_per_hour),
    )


def _sum(first: float | None, second: float | None) -> float | None:
    return None if first is None or second is None else first + second
