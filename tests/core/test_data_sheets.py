"""Profiles of devices against the figures that vendors print, in the vendors' own way of counting.

NVIDIA prints newer GPUs with sparsity (twice the dense figure) and links in both directions together. The CPUs are
computed from cores, clock and memory channels.
"""

from __future__ import annotations

from math import floor, inf
from typing import NamedTuple

import pytest

from stretto.core.devices.profiles import PROFILES, profile_of_jax

GB = 1e9


class Sheet(NamedTuple):
    """One data sheet: tera-operations per second by type, GB/s and GB, links both ways."""

    dense: dict[str, float]
    sparse: dict[str, float]
    bandwidth: float
    memory: float
    nvlink: float | None
    pcie: float


_BOTH_HALVES = ("float16", "bfloat16")
_FP8 = ("float8_e4m3fn", "float8_e5m2")
_HOPPER = ({"float32": 67, "float64": 34}, dict.fromkeys(_BOTH_HALVES, 1979.0) | dict.fromkeys(("int8", *_FP8), 3958.0))
_A100 = ({"float32": 19.5, "float64": 9.7}, dict.fromkeys(_BOTH_HALVES, 624.0) | {"int8": 1248.0})
_SHEETS = {
    "h200": Sheet(*_HOPPER, 4800, 141, 900, 128),
    "h100": Sheet(*_HOPPER, 3350, 80, 900, 128),
    "a100": Sheet(*_A100, 2039, 80, 600, 64),
    "a100-40g": Sheet(*_A100, 1555, 40, 600, 64),
    "l40s": Sheet({"float32": 91.6} | dict.fromkeys(_BOTH_HALVES, 362.0), {}, 864, 48, None, 64),
    "l4": Sheet({"float32": 30.3}, dict.fromkeys(_BOTH_HALVES, 242.0) | {"int8": 485.0}, 300, 24, None, 64),
    "a10g": Sheet({"float32": 35}, dict.fromkeys(_BOTH_HALVES, 140.0) | {"int8": 280.0}, 600, 24, None, 64),
    "t4": Sheet({"float32": 8.1, "float16": 65, "int8": 130}, {}, 320, 16, None, 32),
    "v100": Sheet({"float32": 15.7, "float16": 125, "float64": 7.8}, {}, 900, 16, 300, 32),
    "p100": Sheet({"float32": 10.6, "float16": 21.2, "float64": 5.3}, {}, 732, 16, 160, 32),
}


@pytest.mark.parametrize("name", _SHEETS)
def test_a_gpu_has_the_figures_of_its_sheet(name: str) -> None:
    sheet, found = _SHEETS[name], PROFILES[name]
    assert found.tera == sheet.dense | {dtype: floor(tera / 2) for dtype, tera in sheet.sparse.items()}
    assert (found.bytes_per_s, found.memory_bytes) == (sheet.bandwidth * GB, sheet.memory * GB)
    assert found.bus_bytes_per_s == sheet.pcie / 2 * GB
    assert found.peer_bytes_per_s == (0 if sheet.nvlink is None else sheet.nvlink / 2 * GB)
    assert (found.family, found.overhead_s) == ("gpu", 5e-6)


@pytest.mark.parametrize(
    ("name", "cores", "ghz", "per_cycle", "channels"), [("epyc", 96, 2.4, 32, 12), ("xeon", 56, 2.0, 64, 8)]
)
def test_a_cpu_has_the_product_of_cores_clock_and_width(
    name: str, cores: int, ghz: float, per_cycle: int, channels: int
) -> None:
    found, tera = PROFILES[name], round(cores * ghz * per_cycle / 1000, 1)
    assert found.tera == {"float32": tera, "float64": tera / 2}
    assert found.bytes_per_s == pytest.approx(channels * 8 * 4800e6)  # DDR5-4800: 8 bytes, 4,800 million times a second
    assert (found.memory_bytes, found.bus_bytes_per_s, found.peer_bytes_per_s) == (inf, 64 * GB, 0)
    assert (found.family, found.overhead_s) == ("cpu", 2e-6)


@pytest.mark.parametrize(
    ("name", "tera", "int8", "bandwidth", "memory", "bus"),
    [("tpu-v4", 275, None, 1200, 32, 16), ("tpu-v5e", 197, 394, 819, 16, 32)],
)
def test_a_tpu_has_the_figures_of_the_documentation(
    name: str, tera: int, int8: int | None, bandwidth: int, memory: int, bus: int
) -> None:
    found = PROFILES[name]
    assert found.tera == dict.fromkeys(("float32", *_BOTH_HALVES), tera) | ({} if int8 is None else {"int8": int8})
    assert (found.bytes_per_s, found.memory_bytes) == (bandwidth * GB, memory * GB)
    assert (found.peer_bytes_per_s, found.bus_bytes_per_s) == (400e9 / 8, bus * GB)  # 400 Gbit/s per link
    assert (found.family, found.overhead_s) == ("tpu", 5e-6)


@pytest.mark.parametrize(
    ("name", "tera", "bandwidth", "memory"), [("apple-m1-max", 10.4, 400, 64), ("apple-m2-ultra", 27.2, 800, 192)]
)
def test_an_apple_gpu_has_the_figures_of_the_press_release(name: str, tera: float, bandwidth: int, memory: int) -> None:
    found = PROFILES[name]
    assert found.tera == dict.fromkeys(("float32", *_BOTH_HALVES), tera)
    assert (found.bytes_per_s, found.memory_bytes) == (bandwidth * GB, memory * GB)
    assert (found.peer_bytes_per_s, found.bus_bytes_per_s) == (0, 32 * GB)
    assert (found.family, found.overhead_s) == ("gpu", 5e-6)


def test_every_profile_is_in_a_table_above_and_names_its_source() -> None:
    others = {"epyc": "AMD", "xeon": "Intel", "tpu-v4": "Google", "tpu-v5e": "Google"}
    vendors = dict.fromkeys(_SHEETS, "NVIDIA") | others | dict.fromkeys(("apple-m1-max", "apple-m2-ultra"), "Apple")
    assert {name: profile.source.split()[0] for name, profile in PROFILES.items()} == vendors


@pytest.mark.parametrize(
    ("device_kind", "name"),
    [
        ("NVIDIA H200", "h200"),
        ("NVIDIA H100 80GB HBM3", "h100"),
        ("NVIDIA A100-SXM4-80GB", "a100"),
        ("NVIDIA A100 80GB PCIe", "a100"),
        ("NVIDIA A100-SXM4-40GB", "a100-40g"),
        ("NVIDIA A100-PCIE-40GB", "a100-40g"),
        ("NVIDIA L40S", "l40s"),
        ("NVIDIA L4", "l4"),
        ("NVIDIA A10G", "a10g"),
        ("Tesla T4", "t4"),
        ("NVIDIA T4", "t4"),
        ("Tesla V100-SXM2-16GB", "v100"),
        ("Tesla P100-SXM2-16GB", "p100"),
        ("TPU v4", "tpu-v4"),
        ("TPU v5 lite", "tpu-v5e"),
        ("TPU v5e", "tpu-v5e"),
    ],
)
def test_what_jax_calls_a_device_leads_to_its_profile(device_kind: str, name: str) -> None:
    assert profile_of_jax(device_kind) == name
