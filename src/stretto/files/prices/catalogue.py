"""A catalogue of offers from a file, whichever of the known kinds it is."""

from __future__ import annotations

from pathlib import Path

from stretto.files.document import read_document
from stretto.files.prices import ec2, gcp, skypilot
from stretto.files.prices.offer import Offer

#: Larger files are refused, packed or not; all providers of today's largest list take a hundredth of it.
MAX_CATALOGUE_BYTES = 2**30


def read_catalogue(path: str | Path) -> list[Offer]:
    """Return the offers of a file; the content decides what it is.

    Known are SkyPilot's catalogue (the tar archive of all providers, or one ``vms.csv``), the JSON list of
    ec2instances.info, and the YAML price list of ``gcosts`` for Google Cloud; each may be packed with gzip.
    """
    document = read_document(path, max_bytes=MAX_CATALOGUE_BYTES)
    if skypilot.is_archive(document):
        return skypilot.read_archive(document)
    if skypilot.is_catalogue(document):
        return skypilot.read_provider(document)
    if ec2.is_ec2_list(document):
        return ec2.read_ec2_list(document)
    if gcp.is_price_list(document):
        return gcp.read_price_list(document)
    document.fail("not a catalogue: expected SkyPilot's CSV or tar, the EC2 list in JSON, or Google's prices in YAML")
