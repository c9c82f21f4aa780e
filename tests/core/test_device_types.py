"""What device profiles say of types of numbers."""

from __future__ import annotations

import pytest

from stretto.core.devices.profiles import PROFILES


@pytest.mark.parametrize("name", ["p100", "v100", "t4"])
def test_gpus_before_ampere_have_no_units_for_bfloat16(name: str) -> None:
    profile = PROFILES[name]
    assert profile.flops_per_s("bfloat16") == profile.flops_per_s("float32") < profile.flops_per_s("float16")
