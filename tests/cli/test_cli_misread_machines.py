"""Cluster and pool arguments that could be misread are refused, with what was probably meant."""

from __future__ import annotations

from pathlib import Path

import pytest

import stretto
from stretto.core.cluster import Cluster
from stretto.errors import InvalidInput

from .conftest import Run

LAB = '[[device]]\nkind = "cpu"\ncount = 2\n'


@pytest.fixture
def lab(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with one cluster file, as the current one."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "lab.toml").write_text(LAB)
    (tmp_path / "pools.toml").write_text('[[pool]]\nname = "own"\nnum_nodes = 2\n')
    return tmp_path


@pytest.mark.parametrize("word", ["lab.tml", "lab.tomll", "lab.tom", "./lab.tml", "lab"])
def test_a_mistyped_cluster_file_is_not_a_device(run: Run, diamond: Path, lab: Path, word: str) -> None:
    run("plan", diamond, "-c", word).assert_refused(word, "lab.toml" if word != "lab" else "KIND:COUNT")


def test_a_missing_cluster_file_names_its_neighbor(run: Run, diamond: Path, lab: Path) -> None:
    run("plan", diamond, "-c", "lob.toml").assert_refused("No such file", "did you mean lab.toml?")
    run("plan", diamond, "-c", "../nowhere/x").assert_refused("../nowhere/x", "KIND:COUNT")


@pytest.mark.parametrize(
    ("word", "meant"),
    [
        ("gpu4", "gpu:4?"),
        ("gpu-4", "gpu:4?"),
        ("4gpu", "gpu:4?"),
        ("4xgpu", "gpu:4?"),
        ("gpu4x2.5", "gpu:4x2.5?"),
        ("cpux2", "cpu:1x2?"),
        ("gpuu", "gpu:1?"),
        ("cpu:2,gpu4", "cpu:2,gpu:4?"),
    ],
)
def test_shorthand_without_its_colon_is_not_a_device(run: Run, diamond: Path, word: str, meant: str) -> None:
    run("plan", diamond, "-c", word).assert_refused(f"did you mean {meant}")
    with pytest.raises(InvalidInput, match="did you mean"):
        stretto.plan(str(diamond), word)


def test_show_takes_such_words_for_clusters_as_well(run: Run, lab: Path) -> None:
    run("show", "gpu4").assert_refused("did you mean gpu:4?")
    run("show", "lab.tml").assert_refused("did you mean lab.toml?")
    run("show", "flow4").assert_refused("No such file")
    assert run("show", "cpu", "--output", "quiet").out == "1\n"


def test_the_http_api_refuses_it_too_and_looks_at_no_files(lab: Path) -> None:
    from stretto.api.documents import cluster_in

    with pytest.raises(InvalidInput, match=r"did you mean gpu:4\?"):
        cluster_in("gpu4")
    with pytest.raises(InvalidInput) as refused:
        cluster_in("lab.tml")
    assert "lab.toml" not in str(refused.value)


def test_the_usual_kinds_may_stand_alone() -> None:
    assert [Cluster.parse(kind).num_devices for kind in ("cpu", "gpu", "fpga", "tpu", "npu", "accelerator")] == [1] * 6
    assert Cluster.parse("cpu,gpu:2").num_devices == 3
    assert Cluster.parse("fast:1").kinds == ("fast",)
    with pytest.raises(InvalidInput, match="KIND:COUNT"):
        Cluster.parse("fast")


def test_a_bandwidth_states_its_unit(run: Run, diamond: Path) -> None:
    run("plan", diamond, "-c", "gpu:4@16").assert_refused("@16GB/s", "@16Gbit/s")
    assert Cluster.parse("gpu:4@16B/s").bandwidth[0, 1] == 16.0


def test_a_quoted_number_in_a_file_states_its_unit(run: Run, diamond: Path, tmp_path: Path) -> None:
    (tmp_path / "c.toml").write_text('[network]\nbandwidth = "10"\n' + LAB)
    run("plan", diamond, "-c", tmp_path / "c.toml").assert_refused("c.toml", "network.bandwidth", "10GB/s")
    (tmp_path / "c.toml").write_text("[network]\nbandwidth = 10\nlatency = 0.5\n" + LAB)
    assert run("plan", diamond, "-c", tmp_path / "c.toml").code == 0


def test_times_and_sizes_on_the_command_line_state_their_unit(run: Run, diamond: Path, tmp_path: Path) -> None:
    pools = "own:1,cloud:0-8@3.6"
    run("plan", diamond, "--pools", pools, "--deadline", "20").assert_refused("--deadline", "20s or 20min or 20h")
    run("plan", diamond, "--pools", "own:1~90").assert_refused("~90s", "~90min")
    run("prices", "list", tmp_path / "none.csv", "--memory", "64").assert_refused("--memory", "64GB")
    run("serve", "--max-body", "32").assert_refused("--max-body", "32MiB")


def test_a_mistyped_pool_file_names_its_neighbor(run: Run, diamond: Path, lab: Path) -> None:
    run("plan", diamond, "--pools", "pools.tml").assert_refused("did you mean pools.toml?")
    run("plan", diamond, "--pools", "pool.toml").assert_refused("did you mean pools.toml?")


def test_a_mistyped_graph_names_its_neighbor(run: Run, diamond: Path) -> None:
    wrong = diamond.with_name("diamnd.json")
    run("plan", wrong, "-c", "cpu:2").assert_refused("No such file", f"did you mean {diamond}?")
