"""Recorded counters, and parameters of a belief found from them."""

from __future__ import annotations

import numpy as np
import pytest

from racks.rack_cases import small_rack, two_nics
from stretto.errors import InvalidInput
from stretto.racks.belief.recording import CounterRecorder, CounterRecording
from stretto.racks.dispatch import RackEpisode, dispatcher_of
from stretto.racks.params import BeliefParams, CounterSpec, counters_of
from stretto.racks.simulator import RackBatch

_TRUE = {"share": 0.5, "period_s": 5.0, "level": {"pcie-switch": (1.0, 2.5), "memory": (0.05, 0.3)}}


def _played(make=two_nics, *, observer=None, params=None, spec=None, num_streams: int = 1, **sizes):
    model, streams = make(**sizes)
    batch = RackBatch(model, streams, 1, seed=0, counters=counters_of(model, spec), params=params)
    for stream in range(num_streams):
        episode = RackEpisode(batch, dispatcher_of("srpt-belief"), stream=stream, seed=3, observer=observer)
        while not episode.is_over:
            episode.step()
    return batch


@pytest.mark.parametrize("make", [two_nics, small_rack])
def test_an_observed_episode_is_the_same_to_the_last_bit(make):
    recorder = CounterRecorder()
    seen, plain = _played(make, observer=recorder), _played(make)
    np.testing.assert_array_equal(seen.belief.chance, plain.belief.chance)
    np.testing.assert_array_equal(seen.state.end_s, plain.state.end_s)
    recording = recorder.recording()
    assert np.all(np.diff(recording.end_s) > 0)
    assert np.diff(recording.end_s).max() <= seen.counters.period_s + 1e-9
    assert ((recording.progress > 0) <= (recording.kernel >= 0)).all()


def test_a_recording_survives_its_arrays_and_one_of_another_rack_is_refused():
    recorder = CounterRecorder()
    batch = _played(observer=recorder)
    arrays, num = recorder.recording().arrays(), len(batch.counters.resource)
    again = CounterRecording.of(arrays, batch.model, num)
    np.testing.assert_array_equal(again.mean, arrays["mean"])
    with pytest.raises(InvalidInput, match="record it on the same rack"):
        CounterRecording.of(arrays, small_rack()[0], num)
    with pytest.raises(InvalidInput, match="is missing"):
        CounterRecording.of({name: arrays[name] for name in arrays if name != "sd"}, batch.model, num)
    with pytest.raises(InvalidInput, match="kernel is not in"):
        CounterRecording.of(arrays | {"kernel": arrays["kernel"] + 9}, batch.model, num)
    with pytest.raises(InvalidInput, match="two or more"):
        CounterRecording.of({name: one[:1] for name, one in arrays.items()}, batch.model, num)


def test_true_parameters_are_found_from_counters_alone():
    pytest.importorskip("jax")
    from stretto.racks.belief.fit import fit_belief

    recorder = CounterRecorder()
    spec = CounterSpec(noise=0.5, theta=6.0)
    batch = _played(observer=recorder, spec=spec, num_instances=4, num_streams=4, num_jobs=40)
    start = BeliefParams(level=_TRUE["level"])
    found = fit_belief(batch.model, batch.counters, recorder.recording(), start, num_updates=250)
    assert found.noise == pytest.approx(0.5, rel=0.15)
    assert found.theta == pytest.approx(6.0, rel=0.2)
    assert found.share == pytest.approx(0.5, abs=0.15)
    assert found.period_s < 20.0  # it began at 40 s, and is 5 s
    assert (found.spread, found.scale_sd) == (start.spread, start.scale_sd)
    again = fit_belief(batch.model, batch.counters, recorder.recording(), start, num_updates=250)
    assert again == found


def test_online_the_parameters_in_use_move_towards_the_true_ones():
    pytest.importorskip("jax")
    from stretto.racks.belief.fit import OnlineFit

    model, _ = two_nics()
    spec, start = CounterSpec(noise=0.4), BeliefParams(**_TRUE)
    observer = OnlineFit(model, counters_of(model, spec), start, seed=0, every=2)
    batch = _played(observer=observer, spec=spec, params=start, num_instances=3, num_streams=3, num_jobs=40)
    assert observer.fit.num_updates > 20
    np.testing.assert_array_equal(batch.params, observer.fit.found().array())
    assert abs(observer.fit.found().noise - 0.4) < 0.5 * abs(start.noise - 0.4)
