"""Devices by name: what their figures must satisfy, links between them, and what JAX calls them."""

from __future__ import annotations

import pytest

from stretto.core.devices.profiles import PROFILES, kind_of_jax, link_of, profile_of_jax


@pytest.mark.parametrize("name", PROFILES)
def test_a_profile_is_whole(name: str) -> None:
    found = PROFILES[name]
    assert found.family in ("cpu", "gpu", "tpu")
    assert 1e12 <= found.flops_per_s() < 1e15
    assert found.flops_per_s("float64") <= found.flops_per_s() <= found.flops_per_s("float16")
    assert found.flops_per_s("bfloat16") in (found.flops_per_s("float16"), found.flops_per_s("float32"))
    assert found.flops_per_s("complex64") == found.flops_per_s("float32")
    assert 0 < found.overhead_s < 1e-4
    assert found.source
    if found.family == "cpu":
        assert found.memory_bytes == float("inf")
    else:
        assert 16e9 <= found.memory_bytes <= 192e9
    # A device moves more within itself than to its peers, and to those no less than over a bus of two bytes' width.
    assert found.bytes_per_s > found.peer_bytes_per_s
    assert found.bus_bytes_per_s in (16e9, 32e9, 64e9)
    assert found.peer_bytes_per_s == 0 or found.peer_bytes_per_s > found.bus_bytes_per_s


def test_links_are_those_of_peers_or_of_the_slower_bus() -> None:
    assert link_of("h100", "h100") == (10e-6, 450e9)
    assert link_of("h100", "a100") == link_of("a100", "h100") == (10e-6, 32e9)
    assert link_of("h100", "h200") == (10e-6, 64e9)
    assert link_of("l4", "l4") == (10e-6, 32e9)
    assert link_of("t4", "cpu") == link_of("cpu", "t4") == (10e-6, 16e9)


def test_jax_devices_are_found_by_the_longest_beginning() -> None:
    for name, profile in PROFILES.items():
        for start in profile.jax_names:
            assert profile_of_jax(start) == name
    assert profile_of_jax("NVIDIA A100-SXM4-40GB") == "a100-40g"
    assert profile_of_jax("NVIDIA A100-SXM4-80GB MIG") == "a100"
    assert profile_of_jax("NVIDIA L40S") == "l40s"
    assert profile_of_jax("NVIDIA L4") == "l4"
    assert profile_of_jax("my NVIDIA L4") is None
    assert kind_of_jax("NVIDIA L4", "gpu") == "l4"
    assert (kind_of_jax("what", "gpu"), kind_of_jax("what", "cpu"), kind_of_jax("what", "rocm")) == (
        "gpu",
        "cpu",
        "gpu",
    )


def test_profiles_cannot_be_changed() -> None:
    with pytest.raises(TypeError):
        PROFILES["h100"] = PROFILES["l4"]  # type: ignore[index]
    with pytest.raises(TypeError):
        PROFILES["h100"].tera["float32"] = 1.0  # type: ignore[index]


@pytest.mark.parametrize("name", ["p100", "v100", "t4"])
def test_gpus_before_ampere_have_no_units_for_bfloat16(name: str) -> None:
    found = PROFILES[name]
    assert found.flops_per_s("bfloat16") == found.flops_per_s("float32") < found.flops_per_s("float16")
