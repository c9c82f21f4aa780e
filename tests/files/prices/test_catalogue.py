"""Catalogues: the real ones, small ones of each kind, and what is told of damaged ones."""

from __future__ import annotations

import csv
import gzip
import io
import json
import tarfile
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from research.readers.gcp_machine_types import MachineType, read_accelerator_regions, read_machine_types

from stretto.errors import InvalidInput, StrettoError
from stretto.files.document import Document
from stretto.files.prices import skypilot
from stretto.files.prices.catalogue import read_catalogue
from stretto.files.prices.gcp import read_price_list
from stretto.files.prices.offer import GIB, Offer

HEADER = "InstanceType,AcceleratorName,AcceleratorCount,vCPUs,MemoryGiB,GpuInfo,Price,SpotPrice,Region,AvailabilityZone"
SMALL = f"""{HEADER}
m5.large,,,2.0,8.0,,0.096,0.035,us-east-1,use1-az1
g5.xlarge,A10G,1.0,4.0,16.0,"{{'Gpus': 1, 'x': 2}}",1.006,,us-east-1,use1-az1
,T4,2,,,,0.7,0.22,us-west-1,
"""
PRICES = """---
about:
  copyright: |2

    Not a key, not a value
compute:
  instance:
    a2-highgpu-1g:
      a100: 1
      cost:
        us-east1:
          hour: 3.5
          hour_spot: 1.25
          month: 2000
        us-west1:
          hour: 4
      cpu: 12
      ram: 85
    e2-micro:
      cost:
        us-east1:
          hour: 0.01
      cpu: 0.25
      local-ssd: 375
      ram: 1
  license:
    rhel:
      cost: nonsense here is not read
"""


def write(folder: Path, name: str, content: str | bytes) -> Path:
    path = folder / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def tar_of(members: dict[str, bytes]) -> bytes:
    target = io.BytesIO()
    with tarfile.open(fileobj=target, mode="w") as archive:
        for name, data in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
    return target.getvalue()


def test_skypilot_archive(data_dir: Path) -> None:
    path = data_dir / "prices" / "skypilot-catalog-2025-12-31.tar.gz"
    offers = read_catalogue(path)
    assert len(offers) == 91_111
    # The same rows by another way: DictReader over the archive, sums of what each provider asks.
    prices: Counter[str] = Counter()
    counts: Counter[str] = Counter()
    with tarfile.open(path) as archive:
        for info in archive:
            member = archive.extractfile(info)
            assert member is not None
            provider = info.name.split("/")[-2]
            for row in csv.DictReader(io.TextIOWrapper(member, "utf-8")):
                counts[provider] += 1
                prices[provider] += float(row["Price"] or 0)  # type: ignore[assignment]
    assert len(counts) == 22
    assert Counter(offer.provider for offer in offers) == counts
    for provider, total in prices.items():
        found = sum(offer.price_usd_per_hour or 0.0 for offer in offers if offer.provider == provider)
        assert found == pytest.approx(total)


def test_ec2_list(data_dir: Path) -> None:
    path = data_dir / "prices" / "ec2instances-2017-11-12.json.gz"
    offers = read_catalogue(path)
    raw = json.loads(gzip.decompress(path.read_bytes()))
    assert len({offer.instance_type for offer in offers}) == len(raw) == 88
    assert len(offers) == sum(len(entry["pricing"]) for entry in raw)
    (found,) = [o for o in offers if o.instance_type == "p3.8xlarge" and o.region == "us-east-1"]
    (entry,) = [e for e in raw if e["instance_type"] == "p3.8xlarge"]
    assert found.accelerator == "GPU"
    assert found.num_accelerators == entry["GPU"] == 4
    assert found.memory_bytes == entry["memory"] * GIB
    assert found.price_usd_per_hour == float(entry["pricing"]["us-east-1"]["linux"]["ondemand"])
    fpga = {offer.instance_type: offer.num_accelerators for offer in offers if offer.accelerator == "FPGA"}
    assert fpga == {"f1.2xlarge": 1, "f1.16xlarge": 8}


def test_google_prices_equal_a_yaml_library(data_dir: Path) -> None:
    yaml = pytest.importorskip("yaml")
    path = data_dir / "prices" / "gcp-pricing-2026-01-01.yml.gz"
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    root = yaml.load(gzip.decompress(path.read_bytes()), Loader=loader)
    machines = root["compute"]["instance"]
    offers = {(offer.instance_type, offer.region): offer for offer in read_catalogue(path)}
    assert set(offers) == {(name, region) for name, entry in machines.items() for region in entry.get("cost", {})}
    for (name, region), offer in offers.items():
        entry = machines[name]
        cost = entry["cost"][region]
        assert offer.price_usd_per_hour == (cost.get("hour") or None)
        assert offer.spot_price_usd_per_hour == (cost.get("hour_spot") or None)
        assert (offer.num_vcpus, offer.memory_bytes) == (entry["cpu"], entry["ram"] * GIB)
        assert offer.num_accelerators == (entry[offer.accelerator] if offer.accelerator else 0)


def test_google_tables_agree_with_the_prices(data_dir: Path) -> None:
    folder = data_dir / "prices"
    types = read_machine_types(folder / "gcp-machinetypes.csv.gz")
    assert len(types) == 568
    assert types["n2-standard-4"] == MachineType(4, 16 * GIB, is_shared=False, is_deprecated=False)
    shared = {name for name, entry in types.items() if entry.is_shared}
    assert "e2-micro" in shared
    both = 0
    for offer in read_catalogue(folder / "gcp-pricing-2026-01-01.yml.gz"):
        if offer.instance_type in types and offer.instance_type not in shared:
            both += 1
            assert offer.num_vcpus == types[offer.instance_type].num_vcpus
    assert both > 10_000
    regions = read_accelerator_regions(folder / "gcp-acceleratortyperegion.csv.gz")
    assert sum(map(len, regions.values())) == 283
    assert "us-central1" in regions["nvidia-l4"]


def test_one_provider(tmp_path: Path) -> None:
    (tmp_path / "aws").mkdir()
    offers = read_catalogue(write(tmp_path / "aws", "vms.csv", SMALL))
    assert offers == [
        Offer("aws", "m5.large", 2, 8 * GIB, None, 0, "us-east-1", "use1-az1", 0.096, 0.035),
        Offer("aws", "g5.xlarge", 4, 16 * GIB, "A10G", 1, "us-east-1", "use1-az1", 1.006, None),
        Offer("aws", "", 0, 0, "T4", 2, "us-west-1", "", 0.7, 0.22),
    ]


def test_small_google_prices() -> None:
    offers = read_price_list(Document("prices.yml", PRICES.encode()))
    assert offers == [
        Offer("gcp", "a2-highgpu-1g", 12, 85 * GIB, "a100", 1, "us-east1", "", 3.5, 1.25),
        Offer("gcp", "a2-highgpu-1g", 12, 85 * GIB, "a100", 1, "us-west1", "", 4.0, None),
        Offer("gcp", "e2-micro", 0.25, 1 * GIB, None, 0, "us-east1", "", 0.01, None),
    ]


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ("8.0,,0.096", "many,,0.096", r"vms\.csv:2 \[MemoryGiB\]: 'many' is not a number"),
        ("0.096", "-1", r"vms\.csv:2 \[Price\]: '-1' must be finite"),
        (",0.035,us", ",us", r"vms\.csv:2: 9 fields where the header has 10"),
        ("MemoryGiB", "MemoryGB", r"vms\.csv:1 \[MemoryGiB\]: unknown column 'MemoryGiB'; did you mean MemoryGB"),
        ("'x': 2}\"", "'x': 2}", r"vms\.csv:\d+: wrong CSV"),
    ],
)
def test_faults_of_a_provider_have_their_place(tmp_path: Path, old: str, new: str, told: str) -> None:
    assert old in SMALL
    with pytest.raises(InvalidInput, match=told):
        read_catalogue(write(tmp_path, "vms.csv", SMALL.replace(old, new)))


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        (
            "hour: 3.5",
            "hour: cheap",
            r"prices\.yml:12 \[a2-highgpu-1g\.cost\.us-east1\.hour\]: 'cheap' is not a number",
        ),
        ("      cpu: 12\n", "", r"prices\.yml:8 \[a2-highgpu-1g\]: 'cpu' is missing"),
        ("a100: 1\n", "a100: 1\n      l4: 2\n", "a100 and l4 in one machine"),
        ("        us-west1:\n", "        - us-west1\n", r"prices\.yml:15: '- us-west1' is not a key"),
        ("  instance:\n", "  instances:\n", "no compute.instance section"),
    ],
)
def test_faults_of_google_prices_have_their_place(old: str, new: str, told: str) -> None:
    assert old in PRICES
    with pytest.raises(InvalidInput, match=told):
        read_price_list(Document("prices.yml", PRICES.replace(old, new).encode()))


@pytest.mark.parametrize(
    ("entry", "told"),
    [
        ("3", r"\[\[0\]\]: expected an object"),
        ('{"instance_type": "a"}', "'pricing' is missing"),
        ('{"instance_type": "a", "vCPU": "x", "pricing": {"r": {}}}', r"a\.vCPU\]: 'x' is not a number"),
        ('{"instance_type": "a", "pricing": {"r": {"linux": {"ondemand": "N/A"}}}}', r"a\.pricing\.r\.linux\.ondemand"),
    ],
)
def test_faults_of_the_ec2_list_have_their_place(tmp_path: Path, entry: str, told: str) -> None:
    text = f'[{entry}, {{"instance_type": "b", "pricing": {{}}}}]'
    with pytest.raises(InvalidInput, match=told):
        read_catalogue(write(tmp_path, "ec2.json", text))


def test_archives_hold_only_price_lists(tmp_path: Path) -> None:
    members = {"v8/aws/vms.csv": SMALL.encode(), "v8/aws/notes.txt": b"hello", "v8/gcp/vms.csv": SMALL.encode()}
    offers = read_catalogue(write(tmp_path, "all.tar.gz", gzip.compress(tar_of(members))))
    assert Counter(offer.provider for offer in offers) == {"aws": 3, "gcp": 3}
    bad = {"v8/aws/vms.csv": SMALL.replace("0.096", "x").encode()}
    with pytest.raises(InvalidInput, match=r"all\.tar#v8/aws/vms\.csv:2 \[Price\]"):
        read_catalogue(write(tmp_path, "all.tar", tar_of(bad)))
    with pytest.raises(InvalidInput, match="no offers"):
        read_catalogue(write(tmp_path, "none.tar", tar_of({"readme": b"x"})))


def test_limits_are_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bomb = gzip.compress(b"InstanceType,vCPUs\n" + b"0" * (200 * 2**20), compresslevel=9)
    with pytest.raises(InvalidInput, match="bomb"):
        read_catalogue(write(tmp_path, "bomb.csv.gz", bomb))
    monkeypatch.setattr(skypilot, "MAX_MEMBERS", 2)
    many = tar_of({f"{number}/vms.csv": SMALL.encode() for number in range(3)})
    with pytest.raises(InvalidInput, match="more than 2 members"):
        read_catalogue(write(tmp_path, "many.tar", many))


def test_cut_archives_are_told(tmp_path: Path) -> None:
    whole = tar_of({"aws/vms.csv": SMALL.encode() * 40})
    with pytest.raises(InvalidInput, match="cut"):
        read_catalogue(write(tmp_path, "cut.tar", whole[:1500]))


def test_other_files_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="not a catalogue"):
        read_catalogue(write(tmp_path, "other.txt", "hello"))


@settings(max_examples=150, deadline=None)
@given(data=st.data())
def test_damaged_files_raise_only_our_errors(data: st.DataObject, tmp_path_factory: pytest.TempPathFactory) -> None:
    ec2 = '[{"instance_type": "b", "vCPU": 2, "memory": 3, "pricing": {"r": {"linux": {"ondemand": "0.1"}}}}]'
    whole = data.draw(
        st.sampled_from([SMALL.encode(), PRICES.encode(), ec2.encode(), tar_of({"aws/vms.csv": SMALL.encode()})])
    )
    content = bytearray(whole)
    for _ in range(data.draw(st.integers(1, 4))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    path = write(tmp_path_factory.getbasetemp(), "damaged", bytes(content))
    try:
        offers = read_catalogue(path)
    except StrettoError:
        return
    assert all(offer.num_vcpus >= 0 for offer in offers)
