"""Checkpoints that are whole files but hold something else than expected are refused in one line, wherever read."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from stretto.errors import InvalidInput
from stretto.files import checkpoint
from stretto.graphs.doppler.generalist import GENERALIST, load_network, load_policies
from stretto.graphs.doppler.parameters import init_params
from stretto.graphs.doppler.settings import DopplerSettings
from stretto.queues.mars.candidates import untrained_nets
from stretto.queues.mars.network import load_nets, save_nets
from stretto.racks.symphony import network

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


@pytest.fixture(scope="module")
def nets_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("nets") / "nets.npz"
    save_nets(path, untrained_nets()[:2], {})
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
    for name in ("hidden", "bias", "direct"):
        _refused(network.load_weights, network.SHIPPED, tmp_path / "forged.npz", name, change)


@pytest.mark.parametrize("field", ["kind", "version"])
def test_symphony_of_another_kind_or_version(field: str, tmp_path: Path) -> None:
    arrays, meta = checkpoint.load(network.SHIPPED)
    checkpoint.save(tmp_path / "old.npz", arrays, {**meta, field: 1})
    with pytest.raises(InvalidInput, match=rf"old\.npz \[{field}\]"):
        network.load_weights(tmp_path / "old.npz")


@pytest.fixture(scope="module")
def doppler_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A checkpoint of Doppler's networks."""
    settings = DopplerSettings(tables=False)
    arrays = {f"params/{name}": value for name, value in init_params(settings, 0).items()}
    path = tmp_path_factory.mktemp("doppler") / "networks.npz"
    checkpoint.save(path, arrays, {"settings": asdict(settings)})
    return path


@pytest.mark.parametrize("change", CHANGES)
def test_doppler_networks(change: Change, tmp_path: Path, doppler_file: Path) -> None:
    for number, name in enumerate(("params/enc_in", "params/sel_in")):
        _refused(load_network, doppler_file, tmp_path / f"forged{number}.npz", name, change)


@pytest.mark.parametrize("change", [one for one in CHANGES if one is not _cut])  # fewer policies are policies
def test_doppler_policies(change: Change, tmp_path: Path) -> None:
    _refused(load_policies, GENERALIST, tmp_path / "forged.npz", "policies", change)


@pytest.mark.parametrize("change", CHANGES)
def test_doppler_where_a_training_starts_with_them(change: Change, tmp_path: Path, doppler_file: Path) -> None:
    pytest.importorskip("jax")
    from stretto.graphs.doppler.run import first_weights

    def load(path: Path) -> None:
        first_weights(str(path), None, DopplerSettings(tables=False))

    _refused(load, doppler_file, tmp_path / "forged.npz", "params/enc_in", change)


@pytest.mark.parametrize("change", CHANGES)
def test_mars(change: Change, tmp_path: Path, nets_file: Path) -> None:
    path, net = tmp_path / "forged.npz", _first_net(nets_file)
    for name in (f"{net}.weight", f"{net}.reserve"):
        _refused(load_nets, nets_file, path, name, change)


@pytest.mark.parametrize("about", [None, {}, {"width": 10**9}, {"width": "x"}, {"colour": 1}, [1], {"variant": "x"}])
def test_settings_that_describe_no_network(about: Any, tmp_path: Path, nets_file: Path, doppler_file: Path) -> None:
    doppler = {"hidden": 10**9} if about == {"width": 10**9} else about
    arrays, meta = checkpoint.load(doppler_file)
    checkpoint.save(tmp_path / "d.npz", arrays, {**meta, "settings": doppler})
    if about != {}:  # which are the defaults
        with pytest.raises(InvalidInput, match=r"d\.npz \[settings\]"):
            load_network(tmp_path / "d.npz")
    arrays, meta = checkpoint.load(nets_file)
    checkpoint.save(tmp_path / "m.npz", arrays, {**meta, "nets": about})
    with pytest.raises(InvalidInput, match=r"m\.npz"):
        load_nets(tmp_path / "m.npz")
