"""Checkpoints that are whole files but hold something else than expected are refused in one line, wherever read."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from stretto.errors import InvalidInput
from stretto.files import checkpoint
from stretto.graphs.doppler.generalist import GENERALIST, load_weights
from stretto.queues.mars.candidates import untrained_nets
from stretto.queues.mars.network import load_nets, save_nets
from stretto.racks.simulator import RackBatch
from stretto.racks.symphony import scheduler
from stretto.racks.symphony.cases import case

Arrays = dict[str, Any]
Change = Callable[[Arrays, str], None]


def _cut(arrays: Arrays, name: str) -> None:
    arrays[name] = arrays[name][:-1] if arrays[name].ndim else np.zeros(3)


def _deepen(arrays: Arrays, name: str) -> None:
    arrays[name] = arrays[name][None]


def _drop(arrays: Arrays, name: str) -> None:
    del arrays[name]


def _nan(arrays: Arrays, name: str) -> None:
    arrays[name] = np.full_like(arrays[name], np.nan)


def _complex(arrays: Arrays, name: str) -> None:
    arrays[name] = arrays[name].astype(np.complex64)


def _int8(arrays: Arrays, name: str) -> None:
    arrays[name] = np.nan_to_num(arrays[name], posinf=1.0).astype(np.int8)


CHANGES = [_cut, _deepen, _drop, _nan, _complex, _int8]


def _symphony(path: Path) -> None:
    scheduler.load_policy(path, _batch())


def _batch() -> RackBatch:
    world = case("small-rack").world(seed=None, num_instances=1)
    return RackBatch(world.model, world.streams, 1, seed=0, counters=world.counters, params=world.belief)


@pytest.fixture(scope="module")
def nets_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("nets") / "nets.npz"
    save_nets(path, [net.with_hidden(2) for net in untrained_nets()[:2]], {})
    return path


def _first_net(path: Path) -> str:
    return str(checkpoint.load(path)[1]["nets"][0])


def _refused(load: Callable[[Path], Any], source: Path, path: Path, name: str, change: Change) -> None:
    arrays, meta = checkpoint.load(source)
    change(arrays, name)
    checkpoint.save(path, arrays, meta)
    with pytest.raises(InvalidInput) as caught:
        load(path)
    text = str(caught.value)
    assert str(path) in text
    if not name.endswith("bias"):  # whose length says how long the others should be
        assert name.rpartition(".")[2].rpartition("/")[2] in text
    assert "\n" not in text


@pytest.mark.parametrize("change", CHANGES)
def test_symphony(change: Change, tmp_path: Path) -> None:
    source = Path(scheduler.__file__).with_name("shipped.npz")
    for name in ("gate", "pair_out", "follows"):
        _refused(_symphony, source, tmp_path / "forged.npz", name, change)


@pytest.mark.parametrize("change", CHANGES)
def test_doppler(change: Change, tmp_path: Path) -> None:
    for number, name in enumerate(("params/enc_in", "params/sel_in")):
        _refused(load_weights, GENERALIST, tmp_path / f"forged{number}.npz", name, change)


@pytest.mark.parametrize("change", CHANGES)
def test_doppler_where_a_training_starts_with_them(change: Change, tmp_path: Path) -> None:
    pytest.importorskip("jax")
    from stretto.graphs.doppler.run import first_weights
    from stretto.graphs.doppler.settings import DopplerSettings

    settings = DopplerSettings(**{**checkpoint.load(GENERALIST)[1]["settings"], "tables": False})

    def load(path: Path) -> None:
        first_weights(str(path), None, settings)

    _refused(load, GENERALIST, tmp_path / "forged.npz", "params/enc_in", change)


@pytest.mark.parametrize("change", CHANGES)
def test_mars(change: Change, tmp_path: Path, nets_file: Path) -> None:
    path, net = tmp_path / "forged.npz", _first_net(nets_file)
    for name in (f"{net}.skip", f"{net}.hidden", f"{net}.bias", f"{net}.reserve"):
        _refused(load_nets, nets_file, path, name, change)


@pytest.mark.parametrize("about", [None, {}, {"width": 10**9}, {"width": "x"}, {"colour": 1}, [1], {"variant": "x"}])
def test_settings_that_describe_no_network(about: Any, tmp_path: Path, nets_file: Path) -> None:
    arrays, meta = checkpoint.load(Path(scheduler.__file__).with_name("shipped.npz"))
    checkpoint.save(tmp_path / "s.npz", arrays, {**meta, "net": about})
    if about != {}:  # which are the defaults
        with pytest.raises(InvalidInput, match=r"s\.npz \[net\]"):
            _symphony(tmp_path / "s.npz")
    doppler = {"hidden": 10**9} if about == {"width": 10**9} else about
    arrays, meta = checkpoint.load(GENERALIST)
    checkpoint.save(tmp_path / "d.npz", arrays, {**meta, "settings": doppler})
    if about != {}:
        with pytest.raises(InvalidInput, match=r"d\.npz \[settings\]"):
            load_weights(tmp_path / "d.npz")
    arrays, meta = checkpoint.load(nets_file)
    checkpoint.save(tmp_path / "m.npz", arrays, {**meta, "nets": about})
    with pytest.raises(InvalidInput, match=r"m\.npz"):
        load_nets(tmp_path / "m.npz")


def test_the_shapes_that_numpy_knows_are_those_of_the_network() -> None:
    pytest.importorskip("jax")
    from stretto.racks.symphony.network import init_params
    from stretto.racks.symphony.settings import NetSettings, shape_of, weight_shapes

    batch = _batch()
    shape = shape_of(batch.model, len(batch.counters.resource), batch.streams)
    for settings in (NetSettings("belief", 4, 6, 3), NetSettings("rnn", 4, 6)):
        made = {name: np.shape(value) for name, value in init_params(shape, settings, 0).items()}
        assert weight_shapes(shape, settings) == made
