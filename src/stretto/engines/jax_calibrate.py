"""Measure this machine's devices of JAX: classes of operations, copies between devices, and what sharing costs."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

import numpy as np

from stretto.core.devices.profiles import kind_of_jax
from stretto.errors import InvalidInput, MissingExtra
from stretto.files.cost_table import MeasuredCosts
from stretto.files.graphs.jax_equations import Jax
from stretto.files.graphs.roofline import ClassRooflines, Roofline

#: Rounds of one operation inside a compiled function: their difference to one round is free of the call itself.
_ROUNDS = 9
_COPIES = (1 << 14, 1 << 18, 1 << 22)


def calibrate_jax(devices: Sequence[Jax] | None = None, *, repeats: int = 7) -> MeasuredCosts:
    """Measure classes of operations on each kind of device, and copies between the first two devices.

    Parameters
    ----------
    devices
        By default ``jax.devices()``.
    repeats
        The shortest of so many runs counts.
    """
    try:
        import jax
    except ImportError:
        raise MissingExtra("jax", "jax", "measuring devices of JAX") from None
    if repeats < 1:
        raise InvalidInput(f"{repeats} must be at least 1", field="repeats")
    devices = tuple(devices if devices is not None else jax.devices())
    kinds = {kind_of_jax(str(one.device_kind), one.platform): one for one in reversed(devices)}
    models = {kind: ClassRooflines(_classes(device, repeats)) for kind, device in kinds.items()}
    latency_s, bytes_per_s = _link(devices[0], devices[1], repeats) if len(devices) > 1 else (None, None)
    names = ", ".join(dict.fromkeys(str(device.device_kind) for device in devices))
    machine = f"{len(devices)} devices of JAX {jax.__version__} ({names})"
    return MeasuredCosts(models, latency_s, bytes_per_s, _busy_factor(devices, repeats), machine)


def shortest_s(run: Callable[[], object], repeats: int) -> float:
    """Return the shortest wall time of a call that waits for its result; the first call compiles."""
    import jax

    jax.block_until_ready(run())
    times = []
    for _ in range(repeats):
        begin = time.perf_counter()
        jax.block_until_ready(run())
        times.append(time.perf_counter() - begin)
    return min(times)


def _classes(device: Jax, repeats: int) -> dict[str, Roofline]:
    """Return a roofline for each class: rates from large operations, the overhead from tiny ones."""
    import jax.numpy as jnp

    from stretto.files.graphs.jax_cost import PER_ELEMENT

    def matmul(x: Jax) -> Jax:
        return x @ x

    def convolution(x: Jax) -> Jax:
        from jax import lax

        return lax.conv_general_dilated(x, jnp.ones((x.shape[1], x.shape[1], 3, 3)) * 1e-2, (1, 1), "SAME")

    size = 2_000_000  # elements; more than a cache holds
    add_s = _each_s(lambda x: x + 1.0, (size,), device, repeats, fuses=False)
    tanh_s = _each_s(jnp.tanh, (65_536,), device, repeats, fuses=True)
    sum_s = _each_s(lambda x: x - jnp.sum(x) * 1e-9, (size,), device, repeats, fuses=False)
    stream = 8 * size / add_s
    tiny = _each_s(matmul, (8, 8), device, repeats, fuses=False)
    matmul_s = _each_s(matmul, (768, 768), device, repeats, fuses=False)
    convolution_s = _each_s(convolution, (4, 32, 48, 48), device, repeats, fuses=False)
    return {
        "elementwise": Roofline(PER_ELEMENT["tanh"] * 65_536 / tanh_s, stream, tiny),
        "reduction": Roofline(PER_ELEMENT["tanh"] * 65_536 / tanh_s, 12 * size / sum_s, tiny),
        "matmul": Roofline(2 * 768**3 / matmul_s, stream, tiny),
        "convolution": Roofline(2 * 4 * 32 * 48 * 48 * 32 * 9 / convolution_s, stream, tiny),
    }


def _each_s(step: Callable[[Jax], Jax], shape: tuple[int, ...], device: Jax, repeats: int, *, fuses: bool) -> float:
    """Return the seconds of one step inside a compiled function."""
    import jax

    x = jax.device_put(jax.numpy.full(shape, 1e-3, "float32"), device)

    def rounds(count: int) -> float:
        def chain(value: Jax) -> Jax:
            for _ in range(count):
                value = step(value)
                value = value if fuses else jax.lax.optimization_barrier(value)
            return value

        compiled = jax.jit(chain)
        return shortest_s(lambda: compiled(x), repeats)

    return max((rounds(_ROUNDS) - rounds(1)) / (_ROUNDS - 1), 1e-8)


def _link(first: Jax, second: Jax, repeats: int) -> tuple[float, float]:
    """Return latency and bytes per second of a copy, fitted to several sizes with equal relative weight."""
    import jax

    times = []
    for size in _COPIES:
        x = jax.device_put(jax.numpy.ones(size // 4, "float32"), first)
        jax.block_until_ready(x)
        times.append(shortest_s(lambda x=x: jax.device_put(x, second), 3 * repeats))  # type: ignore[misc]
    weight = 1.0 / np.array(times)
    table = np.stack([np.ones(len(times)), np.array(_COPIES, dtype=np.float64)], axis=1)
    (latency, per_byte), *_ = np.linalg.lstsq(table * weight[:, None], np.array(times) * weight, rcond=None)
    return max(0.0, float(latency)), 1.0 / max(float(per_byte), 1e-12)


def _busy_factor(devices: Sequence[Jax], repeats: int) -> float:
    """Return how many times as long multiplications take while all devices do the same."""
    import jax

    if len(devices) == 1:
        return 1.0

    def work(x: Jax) -> Jax:
        for _ in range(8):
            x = jax.numpy.tanh(x @ x)
        return x

    compiled = jax.jit(work)
    copies = [jax.device_put(jax.numpy.full((384, 384), 1e-3, "float32"), device) for device in devices]
    jax.block_until_ready([compiled(x) for x in copies])
    alone = shortest_s(lambda: compiled(copies[0]), 2 * repeats)
    together = shortest_s(lambda: [compiled(x) for x in copies], 2 * repeats)
    return max(1.0, together / alone)
