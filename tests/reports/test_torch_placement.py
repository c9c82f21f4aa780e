"""Device maps load with accelerate, splits with torch's pipelines; both give the module's own results."""

from __future__ import annotations

import contextlib
import copy
import math
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="torch is not installed (extra 'torch')")

import stretto  # noqa: E402
from stretto.core.plan import Plan  # noqa: E402
from stretto.errors import Infeasible, InvalidInput, StrettoError, UnknownName  # noqa: E402
from stretto.graphs.simulator import simulate  # noqa: E402
from stretto.reports.device_map import conflicts  # noqa: E402
from torch_cases import CASES, KWARGS, nn, perceptron, resnet, tied  # noqa: E402


def weight_bytes(module: Any) -> int:
    return sum(p.numel() * p.element_size() for p in module.parameters())


@pytest.mark.parametrize("name", CASES)
def test_device_maps_load_with_accelerate(name: str) -> None:
    accelerate = pytest.importorskip("accelerate", reason="accelerate is not installed (extra 'accelerate')")
    module, args = CASES[name]()
    kwargs = KWARGS.get(name, {})
    expected = module(*args, **kwargs)
    placement = stretto.place(module, *args, devices=3, policy="random", example_kwargs=kwargs)
    # accelerate stores what ``Parameter.to`` returns, a plain tensor where "cpu" becomes "cpu:0": several names of the
    # CPU only work where no module with an entry is inside another's hooks.
    aliases = ["cpu", "cpu:0", "cpu:1"] if name in ("perceptron", "towers") else ["cpu"] * 3
    names = placement.device_map(devices=aliases)
    dispatched = accelerate.dispatch_model(module, names, main_device="cpu", force_hooks=True)
    torch.testing.assert_close(dispatched(*args, **kwargs), expected, rtol=0, atol=0)


def run_on_pretended_gpus(module: Any, names: dict[str, Any], args: Any, kwargs: Any) -> Any:
    """Do what ``dispatch_model`` does, on tensors without values: mixed devices fail as they would on real GPUs."""
    from torch._subclasses.fake_tensor import FakeTensorMode
    from torch.utils._pytree import tree_map

    main = next(iter(names.values()))

    def owner(path: str) -> Any:
        while path and path not in names:
            path = path.rpartition(".")[0]
        return names[path] if path else main

    with torch.no_grad(), FakeTensorMode(allow_non_fake_inputs=True) as mode:

        def moved(value: Any, device: Any) -> Any:
            return value.to(device) if isinstance(value, torch.Tensor) else value

        for path, part in module.named_modules():
            for table in (part._parameters, part._buffers):
                for key, value in table.items():
                    if value is not None:
                        full = f"{path}.{key}" if path else key
                        table[key] = mode.from_tensor(value.detach()).to(names.get(full, owner(path)))
            if path in names or not path:
                device = names.get(path, main)
                part.register_forward_pre_hook(
                    lambda _, a, k, device=device: tree_map(lambda v: moved(v, device), (a, k)), with_kwargs=True
                )
        fake_args, fake_kwargs = tree_map(
            lambda v: mode.from_tensor(v) if isinstance(v, torch.Tensor) else v, (args, kwargs)
        )
        return module(*fake_args, **fake_kwargs)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("name", ["resnet", "encoder", "perceptron", "towers"])
def test_device_maps_never_mix_devices(name: str, seed: int) -> None:
    module, args = CASES[name]()
    placement = stretto.place(module, *args, devices=3, policy="random", seed=seed)
    names = placement.device_map(devices=["cuda:0", "cuda:1", "cuda:2"])
    assert set(names) <= {path for path, _ in module.named_modules()}
    run_on_pretended_gpus(copy.deepcopy(module), names, args, {})


def test_a_split_residual_block_is_what_the_map_avoids() -> None:
    module, args = resnet()
    bad = dict.fromkeys(("0", "1.conv1", "1.norm1", "1.conv2", "2", "5"), "cuda:0") | {"1.norm2": "cuda:1"}
    with pytest.raises(Exception, match="same device"):
        run_on_pretended_gpus(copy.deepcopy(module), bad, args, {})


def test_memory_limits_hold_and_are_reported() -> None:
    layer = nn.TransformerEncoderLayer(64, 4, 256, batch_first=True)
    module, args = nn.TransformerEncoder(layer, 4, enable_nested_tensor=False).eval(), (torch.randn(1, 2, 64),)
    limit = int(weight_bytes(module) * 0.5)
    placement = stretto.place(module, *args, devices=3, policy="heft", memory=limit)
    assert sum(placement.parameter_bytes.values()) == weight_bytes(module)
    assert max(placement.parameter_bytes.values()) <= limit
    assert sum(size > 0 for size in placement.parameter_bytes.values()) >= 2
    by_module = placement.by_module
    assert max(by_module.parameter_bytes.values()) <= limit
    with pytest.raises(Infeasible):
        stretto.place(module, *args, devices=2, policy="heft", memory=limit // 2)


def test_memory_by_name_number_and_list() -> None:
    module, args = perceptron()
    for memory in ("1GB", ["1GB", 5e8], {"gpu0": "1GB"}, {1: 1_000_000_000}):
        placement = stretto.place(module, *args, devices=2, policy="heft", memory=memory)
        assert 1e9 in [device.memory_bytes for device in placement.result.problem.cluster.devices]
    with pytest.raises(UnknownName, match="gpu7"):
        stretto.place(module, *args, devices=2, memory={"gpu7": 1})
    with pytest.raises(InvalidInput, match="3 sizes for 2 devices"):
        stretto.place(module, *args, devices=2, memory=[1, 2, 3])


def test_tied_weights_are_counted_once_per_device() -> None:
    module, args = tied()
    one = stretto.place(module, *args, devices=1, policy="heft", example_kwargs=KWARGS["tied"])
    constant = module.scale.numel() * 4
    assert one.parameter_bytes == {"gpu0": weight_bytes(module) + constant}
    assert any("several operations use" in note for note in one.notes)


@pytest.mark.parametrize("name", ["resnet", "encoder", "perceptron"])
@pytest.mark.parametrize("num_stages", [2, 3])
def test_pipelines_take_the_split(name: str, num_stages: int) -> None:
    pipelining = pytest.importorskip("torch.distributed.pipelining", reason="torch was built without distributed")
    module, args = CASES[name]()
    placement = stretto.place(module, *args, devices=3, policy="random")
    stages = placement.stages(num_stages)
    assert sum(stage.num_operations for stage in stages) == placement.graph.num_tasks
    expected = module(*args)
    pipe = pipelining.pipeline(module, mb_args=args, split_spec=placement.split_spec(num_stages))
    assert pipe.num_stages == num_stages
    value = args
    for number in range(num_stages):
        value = pipe.get_stage_module(number)(*value)
        value = value if isinstance(value, tuple) else (value,)
    torch.testing.assert_close(value[0], expected)


def test_stages_are_the_best_of_all_contiguous_ones() -> None:
    from itertools import combinations

    module, args = perceptron()
    placement = stretto.place(module, *args, devices=3, policy="heft")
    problem = placement.result.problem
    seconds = problem.device_duration[:, 0]
    source, target, size = problem.graph.edges
    best = float("inf")
    for cuts in combinations(range(1, problem.num_tasks), 2):
        ends = (0, *cuts, problem.num_tasks)
        crossing = [sum(size[(source < a) & (target >= a)]) / 16e9 for a in ends[:-1]]
        best = min(best, max(seconds[a:b].sum() + c for a, b, c in zip(ends, ends[1:], crossing, strict=False)))
    assert max(stage.seconds for stage in placement.stages(3)) == pytest.approx(best)
    with pytest.raises(InvalidInput, match="4 stages for 3 devices"):
        placement.stages(4)


def test_printing_says_that_durations_are_assumed() -> None:
    module, args = perceptron()
    text = repr(stretto.place(module, *args, devices=2, policy="heft"))
    assert "Durations are assumed (roofline" in text
    assert "Packing" not in text
    with pytest.raises(InvalidInput, match=r"placement\.module"):
        stretto.place(module, *args, devices=2, policy="heft").jit()
    with pytest.raises(InvalidInput, match="does not apply to a PyTorch module"):
        stretto.place(nn.Linear(2, 2), torch.zeros(1, 2), devices=2, dims={"batch": 2})


def test_a_training_step_needs_more_memory_and_says_what_it_assumes() -> None:
    module, args = perceptron()
    called = stretto.place(module, *args, devices=2, policy="heft")
    step = stretto.place(module, *args, devices=2, policy="heft", optimizer_state=2)
    assert sum(s.peak_bytes for s in step.shares) > 3 * sum(s.peak_bytes for s in called.shares)
    assert "training step" in str(step)
    assert "training step" not in str(called)
    with pytest.raises(InvalidInput, match="optimizer_state"):
        stretto.place(module, *args, devices=2, optimizer_state=-1)


@pytest.mark.parametrize(("name", "share"), [("resnet", 10.0), ("encoder", 0.8)])
def test_a_device_map_is_no_slower_than_the_best_cut_into_two(name: str, share: float) -> None:
    module, args = CASES[name]()
    limit = int(weight_bytes(module) * share)
    placement = stretto.place(module, *args, devices=2, policy="random", seed=2, memory=limit)
    assert conflicts(placement.program, placement.plan.assignment.tolist())
    by_module = placement.by_module
    assert not conflicts(by_module.program, by_module.plan.assignment.tolist())
    fastest_s = math.inf
    for at in range(1, len(placement.program.groups)):
        assignment = np.repeat(np.array([0, 1], dtype=np.int32), [at, len(placement.program.groups) - at])
        if not conflicts(placement.program, assignment.tolist()):
            problem = placement.result.problem
            with contextlib.suppress(StrettoError):  # more than a device holds
                fastest_s = min(fastest_s, simulate(problem, Plan(assignment, problem.arrays.topo)).makespan_s)
    assert by_module.makespan_s <= fastest_s * (1 + 1e-9)
    assert fastest_s < math.inf
