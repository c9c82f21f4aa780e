"""PyTorch modules as graphs: tasks by module, weights once, arithmetic as counted by hand."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="torch is not installed (extra 'torch')")

from stretto.errors import InvalidInput  # noqa: E402
from stretto.files.graphs.pytorch.torch_export import SHARED_BYTES, export_module, from_torch_program  # noqa: E402
from stretto.files.graphs.pytorch.torch_training import saved_bytes  # noqa: E402
from torch_cases import CASES, KWARGS, nn, resnet, tied  # noqa: E402


@pytest.mark.parametrize("name", CASES)
def test_values_only_go_to_later_groups(name: str) -> None:
    module, args = CASES[name]()
    program = export_module(module, args, KWARGS.get(name))
    graph = from_torch_program(program)
    source, target, _ = graph.edges
    assert np.all(source < target)
    computes = [node for node in program.flat.graph.nodes if node.op == "call_function"]
    assert sorted(map(id, computes)) == sorted(id(node) for group in program.groups for node in group.nodes)
    for group, above in program.group_of.items():
        assert all(program.group_of.get(arg, 0) <= above for arg in group.all_input_nodes)


def test_tasks_are_leaf_modules_with_what_follows_them() -> None:
    module, args = resnet()
    program = export_module(module, args)
    names = [group.name for group in program.groups]
    assert names[:5] == ["0", "1.conv1", "1.norm1", "1.conv2", "1.norm2"]
    assert "2.shortcut" in names
    last = next(group for group in program.groups if group.name == "1.norm2")
    assert [node.name for node in last.nodes][-2:] == ["add", "relu_1"]


def test_weights_are_resident_and_activations_are_objects() -> None:
    module = nn.Sequential(nn.Linear(10, 20), nn.ReLU(), nn.Linear(20, 5))
    graph = from_torch_program(export_module(module, (torch.zeros(7, 10),)))
    assert graph.task_names == ("0", "2")
    assert graph.resident_bytes is not None
    assert graph.resident_bytes.tolist() == [4 * (10 * 20 + 20), 4 * (20 * 5 + 5)]
    assert graph.object_size.tolist() == [4 * 7 * 20]
    assert graph.meta["total_flops"] == 2 * 7 * 10 * 20 + 7 * 20 + 2 * 7 * 20 * 5
    assert graph.memory_bytes is not None
    assert graph.memory_bytes[0] == 4 * 7 * 10 + 4 * 7 * 20  # the argument, and what the ReLU reads


def test_convolutions_and_attention_are_counted() -> None:
    conv = from_torch_program(export_module(nn.Conv2d(4, 8, 3, groups=2), (torch.zeros(1, 4, 10, 10),)))
    assert conv.meta["total_flops"] == 2 * (8 * 8 * 8) * (2 * 3 * 3)

    class Attention(nn.Module):  # type: ignore[name-defined,misc]
        def forward(self, q, k, v):  # type: ignore[no-untyped-def]
            return nn.functional.scaled_dot_product_attention(q, k, v)

    shape = torch.zeros(2, 3, 5, 4)
    graph = from_torch_program(export_module(Attention(), (shape, torch.zeros(2, 3, 9, 4), torch.zeros(2, 3, 9, 4))))
    assert graph.meta["total_flops"] == 2 * 3 * 5 * 9 * (2 * 4 + 2 * 4 + 5)


def test_tied_weights_are_one_tensor() -> None:
    module, args = tied()
    program = export_module(module, args, KWARGS["tied"])
    users = [group.name for group in program.groups if any(w.target.rpartition(".")[2] == "weight"
             and w.meta["val"].shape == (30, 8) for w in group.weights)]  # fmt: skip
    assert users == ["embed", "head"]
    assert from_torch_program(program).meta[SHARED_BYTES] >= 4 * 30 * 8


def test_the_module_stays_as_it_was() -> None:
    module, args = resnet()
    module.train()
    before = {name: value.clone() for name, value in module.state_dict().items()}
    export_module(module, args)
    assert module.training
    assert all(torch.equal(before[name], value) for name, value in module.state_dict().items())


def test_what_cannot_be_exported_is_said() -> None:
    class Branching(nn.Module):  # type: ignore[name-defined,misc]
        def forward(self, x):  # type: ignore[no-untyped-def]
            return x + 1 if x.sum() > 0 else x - 1

    with pytest.raises(InvalidInput, match=r"module Branching: cannot be exported by torch.export"):
        export_module(Branching(), (torch.zeros(2),))
    with pytest.raises(InvalidInput, match="has no operations"):
        export_module(nn.Identity(), (torch.zeros(2),))


@pytest.mark.parametrize("name", ["encoder", "perceptron", "resnet"])
def test_activations_of_a_training_step_are_those_that_autograd_saves(name: str) -> None:
    module, args = CASES[name]()
    program = export_module(module, args, KWARGS.get(name))
    saved: dict[int, int] = {}
    weights = {tensor.untyped_storage().data_ptr() for tensor in (*module.parameters(), *module.buffers())}

    def keep(tensor):  # type: ignore[no-untyped-def]
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in weights:
            saved[storage.data_ptr()] = storage.nbytes()
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
        result = module(*args, **KWARGS.get(name, {}))
    counted = sum(saved_bytes([group.nodes for group in program.groups]))
    assert result is not None
    assert 1 <= counted / sum(saved.values()) <= 1.25


def test_a_training_step_keeps_gradients_and_state_and_takes_three_times_as_long() -> None:
    module = nn.Sequential(nn.Linear(10, 20), nn.ReLU(), nn.Linear(20, 5))
    module[0].bias.requires_grad_(False)
    called = export_module(module, (torch.zeros(7, 10),))
    graph, step = from_torch_program(called), from_torch_program(replace(called, optimizer_state=2.0))
    assert step.resident_bytes is not None
    activations = [4 * 7 * (10 + 20), 0]  # the argument and what the ReLU gives, which the second layer reads as well
    weights = [4 * (4 * 10 * 20 + 20), 4 * 4 * (20 * 5 + 5)]
    assert step.resident_bytes.tolist() == [weights[0] + activations[0], weights[1]]
    np.testing.assert_allclose(step.kind_duration_s, 3 * graph.kind_duration_s)
    assert step.object_size.tolist() == [2 * 4 * 7 * 20]
