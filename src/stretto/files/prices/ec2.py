"""The list of EC2 instance types that ec2instances.info publishes as JSON: hardware, and Linux prices by region."""

from __future__ import annotations

from collections.abc import Iterator

from stretto.files.document import Document
from stretto.files.fields import as_array, as_name, as_object, member
from stretto.files.prices.offer import GIB, Offer

_ACCELERATORS = ("GPU", "FPGA")


def is_ec2_list(document: Document) -> bool:
    """Say whether the content looks like an array of instance types."""
    return document.head.lstrip().startswith(b"[") and b'"instance_type"' in document.data[:65536]


def read_ec2_list(document: Document) -> list[Offer]:
    """Return one offer for each instance type and region; the file does not name the model of a GPU."""
    entries = as_array(document, document.json, "instances")
    return [offer for place, entry in enumerate(entries) for offer in _offers(document, entry, f"[{place}]")]


def _offers(document: Document, entry: object, place: str) -> Iterator[Offer]:
    table = as_object(document, entry, place)
    kind = as_name(document, member(document, table, "instance_type", place), f"{place}.instance_type")

    def number(key: str) -> float:
        value = table.get(key)
        return document.number(value, f"{kind}.{key}") if value is not None else 0.0

    accelerator = next((key for key in _ACCELERATORS if number(key) > 0), None)
    num_accelerators = number(accelerator) if accelerator is not None else 0.0
    pricing = as_object(document, member(document, table, "pricing", kind), f"{kind}.pricing")
    for region, systems in pricing.items():
        field = f"{kind}.pricing.{region}"
        linux = as_object(document, as_object(document, systems, field).get("linux", {}), f"{field}.linux")
        price = linux.get("ondemand")
        yield Offer(
            "aws",
            kind,
            number("vCPU"),
            number("memory") * GIB,
            accelerator,
            num_accelerators,
            region,
            "",
            (document.number(price, f"{field}.linux.ondemand") or None) if price is not None else None,
            None,
        )
