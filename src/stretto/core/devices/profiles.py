"""Devices by name: arithmetic by type, memory and links, after the data sheets of their vendors.

Those of the H200, H100, A100, L40S, L4, T4, V100 and P100 agree with tables that others have published; the rest have
been compared with nothing. Figures are peaks without sparsity, so durations by a profile are called assumed. Links are
per direction: ``peer`` between devices of one kind (NVLink, ICI), ``bus`` between all others (PCI Express).
``_LATENCY_S`` and the launch overheads are typical figures, not data of a sheet. The memory of a CPU is that of its
machine: no limit is assumed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

_GB, _TERA = 1e9, 1e12
_LATENCY_S = 10e-6
_PCIE3, _PCIE4, _PCIE5 = 16 * _GB, 32 * _GB, 64 * _GB


@dataclass(frozen=True)
class DeviceProfile:
    """One kind of device.

    Attributes
    ----------
    tera
        Tera-operations per second by type; a type that is not named runs like ``float32``.
    jax_names
        Beginnings of ``device_kind`` by which JAX calls it.
    """

    family: str  # cpu, gpu or tpu
    tera: Mapping[str, float]
    bytes_per_s: float
    memory_bytes: float
    source: str
    bus_bytes_per_s: float = _PCIE4
    peer_bytes_per_s: float = 0.0
    overhead_s: float = 5e-6
    jax_names: tuple[str, ...] = field(default=())

    def flops_per_s(self, dtype: str = "float32") -> float:
        """Return the peak for a type of numbers."""
        return self.tera.get(dtype, self.tera["float32"]) * _TERA


def _half(single: float, half: float, **others: float) -> Mapping[str, float]:
    return MappingProxyType({"float32": single, "float16": half, "bfloat16": half, **others})


def _before_ampere(single: float, half: float, **others: float) -> Mapping[str, float]:
    """Return the types of a GPU without units for ``bfloat16``."""
    return MappingProxyType({"float32": single, "float16": half, **others})


_A100 = _half(19.5, 312, float64=9.7, int8=624)
_H100 = _half(67, 989, float64=34, int8=1979, float8_e4m3fn=1979, float8_e5m2=1979)

PROFILES: Mapping[str, DeviceProfile] = MappingProxyType(
    {
        "h200": DeviceProfile(
            "gpu", _H100, 4800 * _GB, 141 * _GB, "NVIDIA H200 SXM data sheet", _PCIE5, 450 * _GB,
            jax_names=("NVIDIA H200",),
        ),
        "h100": DeviceProfile(
            "gpu", _H100, 3350 * _GB, 80 * _GB, "NVIDIA H100 SXM data sheet", _PCIE5, 450 * _GB,
            jax_names=("NVIDIA H100",),
        ),
        "a100": DeviceProfile(
            "gpu", _A100, 2039 * _GB, 80 * _GB, "NVIDIA A100 SXM 80 GB data sheet", _PCIE4, 300 * _GB,
            jax_names=("NVIDIA A100-SXM4-80GB", "NVIDIA A100 80GB"),
        ),
        "a100-40g": DeviceProfile(
            "gpu", _A100, 1555 * _GB, 40 * _GB, "NVIDIA A100 SXM 40 GB data sheet", _PCIE4, 300 * _GB,
            jax_names=("NVIDIA A100-SXM4-40GB", "NVIDIA A100-PCIE-40GB"),
        ),
        "l40s": DeviceProfile(
            "gpu", _half(91.6, 362), 864 * _GB, 48 * _GB, "NVIDIA L40S data sheet", jax_names=("NVIDIA L40S",)
        ),
        "l4": DeviceProfile(
            "gpu", _half(30.3, 121, int8=242), 300 * _GB, 24 * _GB, "NVIDIA L4 data sheet", jax_names=("NVIDIA L4",)
        ),
        "a10g": DeviceProfile(
            "gpu", _half(35, 70, int8=140), 600 * _GB, 24 * _GB, "NVIDIA A10G data sheet", jax_names=("NVIDIA A10G",)
        ),
        "t4": DeviceProfile(
            "gpu", _before_ampere(8.1, 65, int8=130), 320 * _GB, 16 * _GB, "NVIDIA T4 data sheet", _PCIE3,
            jax_names=("Tesla T4", "NVIDIA T4"),
        ),
        "v100": DeviceProfile(
            "gpu", _before_ampere(15.7, 125, float64=7.8), 900 * _GB, 16 * _GB, "NVIDIA V100 SXM2 16 GB data sheet",
            _PCIE3, 150 * _GB, jax_names=("Tesla V100",),
        ),
        "p100": DeviceProfile(
            "gpu", _before_ampere(10.6, 21.2, float64=5.3), 732 * _GB, 16 * _GB, "NVIDIA P100 SXM2 data sheet", _PCIE3,
            80 * _GB, jax_names=("Tesla P100",),
        ),
        "tpu-v4": DeviceProfile(
            "tpu", _half(275, 275), 1200 * _GB, 32 * _GB, "Google Cloud documentation, TPU v4 (bfloat16)", _PCIE3,
            50 * _GB, jax_names=("TPU v4",),
        ),
        "tpu-v5e": DeviceProfile(
            "tpu", _half(197, 197, int8=394), 819 * _GB, 16 * _GB, "Google Cloud documentation, TPU v5e (bfloat16)",
            _PCIE4, 50 * _GB, jax_names=("TPU v5 lite", "TPU v5e"),
        ),
        "epyc": DeviceProfile(
            "cpu", MappingProxyType({"float32": 7.4, "float64": 3.7}), 460.8 * _GB, float("inf"),
            "AMD EPYC 9654 data sheet: 96 cores at 2.4 GHz, 32 operations per cycle, 12 channels DDR5-4800", _PCIE5,
            overhead_s=2e-6,
        ),
        "xeon": DeviceProfile(
            "cpu", MappingProxyType({"float32": 7.2, "float64": 3.6}), 307.2 * _GB, float("inf"),
            "Intel Xeon Platinum 8480+ data sheet: 56 cores at 2.0 GHz, 64 operations per cycle, 8 channels DDR5-4800",
            _PCIE5, overhead_s=2e-6,
        ),
        "apple-m1-max": DeviceProfile(
            "gpu", _half(10.4, 10.4), 400 * _GB, 64 * _GB, "Apple M1 Max press release (GPU, unified memory)"
        ),
        "apple-m2-ultra": DeviceProfile(
            "gpu", _half(27.2, 27.2), 800 * _GB, 192 * _GB, "Apple M2 Ultra press release (GPU, unified memory)"
        ),
    }
)  # fmt: skip


def link_of(first: str, second: str) -> tuple[float, float]:
    """Return latency and bytes per second between two kinds, of which at least one has a profile."""
    a, b = PROFILES.get(first), PROFILES.get(second)
    if a is not None and first == second and a.peer_bytes_per_s > 0:
        return _LATENCY_S, a.peer_bytes_per_s
    return _LATENCY_S, min(one.bus_bytes_per_s for one in (a, b) if one is not None)


def profile_of_jax(device_kind: str) -> str | None:
    """Return the name of the profile for what JAX calls a device, or None where there is none."""
    found = [
        (len(start), name) for name, one in PROFILES.items() for start in one.jax_names if device_kind.startswith(start)
    ]
    return max(found)[1] if found else None


def kind_of_jax(device_kind: str, platform: str) -> str:
    """Return the kind of a device of JAX: the name of its profile, or ``cpu`` or ``gpu``."""
    return profile_of_jax(device_kind) or ("cpu" if platform == "cpu" else "gpu")
