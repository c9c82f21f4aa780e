"""Placed PyTorch modules compute what the modules compute, and so do their gradients."""

from __future__ import annotations

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="torch is not installed (extra 'torch')")

import stretto  # noqa: E402
from stretto.errors import InvalidInput  # noqa: E402
from torch_cases import CASES, KWARGS, perceptron, resnet, tied  # noqa: E402


def place(name: str, seed: int = 0):  # type: ignore[no-untyped-def]
    module, args = CASES[name]()
    kwargs = KWARGS.get(name, {})
    placed = stretto.place(module, *args, devices=3, policy="random", seed=seed, example_kwargs=kwargs)
    return module, args, kwargs, placed


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("name", CASES)
def test_results_are_equal_on_any_assignment(name: str, seed: int) -> None:
    module, args, kwargs, placement = place(name, seed)
    run = placement.module(["cpu"] * 3)
    assert len(run.stretches) > 1
    assert run.num_cuts >= len(run.stretches) - 1
    torch.testing.assert_close(run(*args, **kwargs), module(*args, **kwargs), rtol=0, atol=0)


@pytest.mark.parametrize("name", CASES)
def test_gradients_are_equal(name: str) -> None:
    module, args, kwargs, placement = place(name)

    def gradients(call):  # type: ignore[no-untyped-def]
        found = call(*args, **kwargs)
        (found["logits"] if isinstance(found, dict) else found).square().sum().backward()
        kept = {key: p.grad.clone() for key, p in module.named_parameters() if p.grad is not None}
        module.zero_grad()
        return kept

    plain, placed = gradients(module), gradients(placement.module(["cpu"] * 3))
    assert plain.keys() == placed.keys()
    for key, value in plain.items():
        torch.testing.assert_close(placed[key], value, rtol=1e-5, atol=1e-6)


def test_a_buffer_is_updated_where_it_lives() -> None:
    module, args = resnet()
    module.train()
    twin, _ = resnet()
    twin.train()
    run = stretto.place(module, *args, devices=2, policy="random").module(["cpu", "cpu"])
    torch.testing.assert_close(run(*args), twin(*args))
    for (key, mine), other in zip(run.weights.named_buffers(), twin.buffers(), strict=True):
        torch.testing.assert_close(mine, other, msg=key)


def test_weights_keep_their_names() -> None:
    module, args = tied()
    run = stretto.place(module, *args, devices=2, policy="random", example_kwargs=KWARGS["tied"]).module(["cpu"] * 2)
    state = run.weights.state_dict()
    assert state.keys() == module.state_dict().keys()
    assert state["embed.weight"].data_ptr() == state["head.weight"].data_ptr()


def test_cuts_follow_devices() -> None:
    """A run on pretended GPUs: an operator whose operands are on two of them would fail."""
    from torch._subclasses.fake_tensor import FakeTensorMode

    module, args = resnet()
    placement = stretto.place(module, *args, devices=3, policy="random")
    run = placement.module(["cpu"] * 3)
    run.devices = tuple(torch.device("cuda", number) for number in range(3))
    with torch.no_grad(), FakeTensorMode(allow_non_fake_inputs=True) as mode:
        for part in run.weights.modules():
            for table in (part._parameters, part._buffers):
                for key, value in table.items():
                    table[key] = mode.from_tensor(value.detach())
        found = run(*(mode.from_tensor(arg) for arg in args))
    last = int(placement.plan.assignment[np.argmax(placement.schedule.finish_s)])
    assert found.device == torch.device("cuda", last)


def test_other_shapes_are_refused() -> None:
    module, args = perceptron()
    run = stretto.place(module, *args, devices=1, policy="heft").module(["cpu"])
    with pytest.raises(InvalidInput, match=r"argument 'input_1' is torch.float32\[5, 12\], but .* place it again"):
        run(torch.zeros(5, 12))
    with pytest.raises(InvalidInput, match="do not have the form"):
        run(*args, *args)
    with pytest.raises(InvalidInput, match="2 devices of torch for a placement on 1"):
        stretto.place(module, *args, devices=1, policy="heft").module(["cpu", "cpu"])
