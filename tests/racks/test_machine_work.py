"""Racks and kernels as arrays: durations and shares of what is on the way, worked out by hand."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from machine_cases import box

from stretto.core.machine import Machine, Part, rack_of
from stretto.core.machine_presets import MachineBuilder
from stretto.errors import InvalidInput
from stretto.racks.machine_work import CPU, FPGA, GPU, NIC, KernelSpec, RackModel, rack_model

INF, NAN = float("inf"), float("nan")


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"duration_s": {}}, "no processor can run it"),
        ({"duration_s": {"cpu": 0.0}}, "duration 0.0 on cpu must be positive"),
        ({"duration_s": {"cpu": INF}}, "duration inf on cpu must be positive"),
        ({"bytes_per_s": {"gpu": -1.0}}, "traffic -1.0 on gpu must not be negative"),
        ({"bytes_per_s": {"gpu": NAN}}, "traffic nan on gpu must not be negative"),
        ({"bytes_per_s": {"gpu": INF}}, "traffic inf on gpu must not be negative"),
        ({"remote_share": 1.1}, "are shares between 0 and 1"),
        ({"remote_share": -0.1}, "are shares between 0 and 1"),
        ({"issue": 1.1}, "are shares between 0 and 1"),
        ({"issue": -0.1}, "are shares between 0 and 1"),
    ],
)
def test_a_wrong_kernel_is_refused(changes: dict[str, Any], words: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        replace(KernelSpec("k", {"cpu": 1.0}), **changes)
    assert words in str(caught.value)
    assert caught.value.field == "k"


def test_kernels_at_the_edge_are_fine() -> None:
    spec = KernelSpec("k", {"cpu": 1.0}, {"cpu": 0.0}, remote_share=1.0, issue=0.0)
    assert replace(spec, remote_share=0.0, issue=1.0).bytes_per_s == {"cpu": 0.0}


SPECS = (
    KernelSpec("sort", {"cpu": 4.0, "gpu": 2.0, "k80": 1.0}, {"cpu": 10.0, "k80": 8.0, "gpu": 99.0}, 0.25, 0.5),
    KernelSpec("match", {"fpga": 3.0}, {"fpga": 5.0}),
)


def model(**options: Any) -> RackModel:
    return rack_model(rack_of([box(), box("other")]), SPECS, **options)


def demands(found: RackModel, kernel: int, processor: str) -> dict[str, float]:
    row = found.arrays.demand[kernel, found.processors.index(processor)]
    return {name: float(value) for name, value in zip(found.resources, row) if value}


def test_the_rows_of_a_rack_lie_machine_by_machine() -> None:
    found, arrays = model(), model().arrays
    assert found.processors[:6] == tuple(
        f"box/{n}" for n in ("cpu0.0.0", "cpu0.0.1", "cpu1.0.0", "cpu1.0.1", "gpu0", "fpga0")
    )
    assert found.resources[:9] == tuple(
        f"box/{n}" for n in ("mem0", "root0", "core0.0", "mem1", "root1", "core1.0", "link0-1", "switch0", "nic0")
    )
    assert found.resource_kind[6:9] == ("socket-link", "pcie-switch", "nic")
    assert found.sources[:5] == tuple(f"box/{n}" for n in ("mem0", "mem1", "switch0", "core0.0", "core1.0"))
    assert found.source_kind[:5] == ("memory", "memory", "pcie-switch", "core", "core")
    assert [name.split("/")[0] for name in found.processors[6:]] == ["other"] * 6
    assert [arrays.proc_ptr.tolist(), arrays.res_ptr.tolist(), arrays.source_ptr.tolist()] == [
        [0, 6, 12],
        [0, 9, 18],
        [0, 5, 10],
    ]
    assert arrays.proc_machine.tolist() == [0] * 6 + [1] * 6
    assert arrays.proc_kind.tolist() == [CPU, CPU, CPU, CPU, GPU, FPGA] * 2
    assert arrays.fpgas.tolist() == [5, 11]
    assert arrays.reconfigure_s.tolist() == [0, 0, 0, 0, 0, 2.0] * 2
    assert model(reconfigure_s=7.0).arrays.reconfigure_s[5] == 7.0
    assert found.num_actions == 2 * (12 + 2) + 1
    for array in (
        arrays.proc_ptr,
        arrays.res_ptr,
        arrays.source_ptr,
        arrays.proc_machine,
        arrays.proc_kind,
        arrays.fpgas,
    ):
        assert array.dtype == np.int32


def test_a_model_goes_before_its_kind() -> None:
    found = model()
    assert found.arrays.duration_s[:, :6].tolist() == [[4.0] * 4 + [1.0, INF], [INF] * 5 + [3.0]]
    # 8 B/s of the K80: three quarters to its own memory, a quarter over the link to the other.
    assert demands(found, 0, "box/gpu0") == pytest.approx(
        {"box/switch0": 8 / 20, "box/root0": 8 / 50, "box/mem0": 8 / 100, "box/link0-1": 2 / 40, "box/mem1": 2 / 100}
    )
    assert demands(found, 0, "other/cpu1.0.1") == pytest.approx(
        {"other/core1.0": 0.5, "other/mem1": 10 / 100, "other/link0-1": 2.5 / 40, "other/mem0": 2.5 / 100}
    )
    assert demands(found, 1, "box/fpga0") == pytest.approx(
        {"box/switch0": 5 / 20, "box/root0": 5 / 50, "box/mem0": 5 / 100}
    )
    assert demands(found, 1, "box/gpu0") == {}


def test_without_another_memory_all_traffic_stays() -> None:
    build = MachineBuilder("single")
    build.socket(0, num_cores=1, num_threads=1, memory=100.0, root=50.0, model="x")
    found = rack_model(rack_of([build.build()]), [SPECS[0]])
    assert demands(found, 0, "single/cpu0.0.0") == pytest.approx({"single/mem0": 0.1, "single/core0.0": 0.5})


def test_remote_traffic_is_shared_by_all_other_memories() -> None:
    parts = (Part("gpu", "gpu"), *(Part(f"mem{i}", "memory", 100.0) for i in range(3)))
    star = Machine("m", parts, (("gpu", "mem0"), ("mem0", "mem1"), ("mem0", "mem2")))
    spec = KernelSpec("k", {"gpu": 1.0}, {"gpu": 100.0}, remote_share=1.0)
    found = rack_model(rack_of([star]), [spec])
    assert demands(found, 0, "m/gpu") == pytest.approx({"m/mem0": 1.0, "m/mem1": 0.5, "m/mem2": 0.5})


def test_foreign_load_takes_its_way_to_memory() -> None:
    found = model()
    rows = {
        source: {name: float(value) for name, value in zip(found.resources, row) if value}
        for source, row in zip(found.sources, found.arrays.source_demand)
    }
    assert rows["box/mem1"] == {"box/mem1": 1.0}
    assert rows["box/switch0"] == pytest.approx({"box/switch0": 1.0, "box/root0": 20 / 50, "box/mem0": 20 / 100})
    assert rows["other/core1.0"] == {"other/core1.0": 1.0}


def test_only_the_kinds_that_are_asked_for_are_commanded() -> None:
    found = model(kinds=("fpga", "gpu"))
    assert found.processors[:2] == ("box/gpu0", "box/fpga0")
    assert found.sources[:3] == ("box/mem0", "box/mem1", "box/switch0")
    assert len(found.sources) == 6  # where no CPU is commanded, nothing on cores matters
    nic = rack_model(rack_of([box()]), [KernelSpec("send", {"nic": 1.0}, {"nic": 5.0})], kinds=("nic",))
    assert nic.arrays.proc_kind.tolist() == [NIC]
    assert demands(nic, 0, "box/nic0") == pytest.approx({"box/nic0": 0.5, "box/root1": 0.1, "box/mem1": 0.05})


def test_what_cannot_run_is_told() -> None:
    with pytest.raises(InvalidInput) as caught:
        rack_model(rack_of([box()], "rack"), [KernelSpec("k", {"tpu": 1.0})])
    assert str(caught.value) == "k: no processor of the rack can run it"
    build = MachineBuilder("bare")
    build.socket(0, num_cores=1, num_threads=1, memory=1.0, root=1.0, model="")
    with pytest.raises(InvalidInput) as caught:
        rack_model(rack_of([build.build()], "rack"), SPECS, kinds=("gpu", "fpga"))
    assert str(caught.value) == "rack: no processor of kind gpu or fpga"
