"""Recorded counters: every window of a rack with what was read, what ran and how far that came."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stretto.core.csr import Floats
from stretto.errors import InvalidInput
from stretto.racks.kernels.belief import fill_belief, update_belief
from stretto.racks.kernels.counters import close_window, read_counters
from stretto.racks.kernels.moves import fill_mask
from stretto.racks.kernels.progress import read_progress
from stretto.racks.kernels.state import OVER, SAME_S, TICK
from stretto.racks.kernels.time import happen, pass_time
from stretto.racks.machine_work import RackModel
from stretto.racks.simulator import Mask, RackBatch

#: Called with the length of a window that was read and not yet closed.
Observer = Callable[[RackBatch, float], None]


@dataclass(frozen=True, eq=False)
class CounterRecording:
    """T windows of C counters and P processors, in order of time.

    Attributes
    ----------
    stream
        Windows of different streams are not neighbors in time; [T].
    mean, sd, num
        Of the samples of each counter; no samples where its group had no turn; [T, C].
    kernel
        What ran on each processor, -1 for nothing; [T, P].
    progress
        Measured progress over that of the model, 0 where there is none; [T, P].
    """

    end_s: Floats
    stream: NDArray[np.int64]
    mean: Floats
    sd: Floats
    num: NDArray[np.int64]
    kernel: NDArray[np.int64]
    progress: Floats

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return what a file holds."""
        return {one.name: getattr(self, one.name) for one in fields(self)}

    @staticmethod
    def of(arrays: Mapping[str, NDArray[Any]], model: RackModel, num_counters: int) -> CounterRecording:
        """Return the recording of a file; raise InvalidInput where it is not one of this rack."""
        num = len(arrays.get("end_s", ()))
        wide = {"mean": num_counters, "sd": num_counters, "num": num_counters}
        wide |= {"kernel": len(model.processors), "progress": len(model.processors)}
        for one in fields(CounterRecording):
            shape = (num, wide[one.name]) if one.name in wide else (num,)
            found = arrays.get(one.name)
            if found is None or found.shape != shape:
                has = "is missing" if found is None else f"has shape {found.shape}"
                raise InvalidInput(
                    f"{one.name} {has}; a recording of {model.rack.name} has {shape}: record it on the same rack "
                    "with stretto.racks.belief.recording.CounterRecorder",
                    field=one.name,
                )
        if num < 2 or not np.isfinite(arrays["end_s"]).all():
            raise InvalidInput(f"{num} windows; two or more with finite times are needed", field="end_s")
        if arrays["kernel"].min() < -1 or arrays["kernel"].max() >= len(model.kernels):
            raise InvalidInput(f"a kernel is not in -1..{len(model.kernels) - 1}", field="kernel")
        return CounterRecording(**{one.name: arrays[one.name] for one in fields(CounterRecording)})


class CounterRecorder:
    """Keeps every window of the first rack of a batch."""

    def __init__(self) -> None:
        self._rows: list[tuple[Any, ...]] = []

    def __call__(self, batch: RackBatch, length_s: float) -> None:
        """Keep the window that ends now."""
        stream, task, readings = int(batch.state.instance[0]), batch.state.task[0], batch.readings
        kernel = np.where(task >= 0, batch.streams.kernel[stream][np.maximum(task, 0)], -1)
        read = (readings.mean[0].copy(), readings.sd[0].copy(), readings.num[0].copy())
        self._rows.append((float(batch.state.now_s[0]), stream, *read, kernel, readings.progress[0].copy()))

    def __len__(self) -> int:
        return len(self._rows)

    def recording(self, last: int | None = None) -> CounterRecording:
        """Return all windows, or the last so many."""
        rows = self._rows if last is None else self._rows[-last:]
        return CounterRecording(*(np.array(column) for column in zip(*rows, strict=True)))


def observed_decision(
    batch: RackBatch, random: NDArray[np.uint64], mask: Mask, must_pass: bool, observe: Observer
) -> bool:
    """Go on until a decision is due, as ``to_decision`` of ``kernels/episode.py``, and show every window on the way."""
    a, w, c, s, readings, belief = (
        batch.model.arrays,
        batch.streams,
        batch.counters,
        batch.state,
        batch.readings,
        batch.belief,
    )

    def take_in() -> None:
        length_s = float(s.window_s[0])
        if read_counters(c, s, 0, readings, random):
            if batch.is_believing:
                read_progress(c, w, s, 0, readings, random)
                update_belief(a, c, s, 0, readings, belief, batch.params, length_s)
            observe(batch, length_s)
            close_window(s, 0)

    has_passed = False
    while must_pass or not fill_mask(a, s, 0, mask):
        must_pass = False
        if not has_passed:
            has_passed = True
            readings.total[0, :] = 0.0
            readings.num_windows[0, :] = 0
        event = TICK
        while event == TICK:
            event = pass_time(a, w, s, 0, c.period_s - s.window_s[0])
            if event == TICK and s.window_s[0] >= c.period_s - SAME_S:
                take_in()
        if event == OVER:
            mask[:] = False
            return True
        take_in()
        happen(a, w, s, 0)
    if batch.is_believing:
        fill_belief(a, s, 0, belief, batch.params)
    return False
