"""Settings: files, environment and flags, each stronger than the one before; mistakes in them are told."""

from __future__ import annotations

from pathlib import Path

import pytest

from stretto.config import CONFIGURABLE, ConfigValue, read_settings

from .conftest import CLUSTER, Run


@pytest.fixture(autouse=True)
def own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder without settings, whoever runs the tests; the user's file is ``user.toml`` in it."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "user.toml").write_text("")
    monkeypatch.setenv("STRETTO_CONFIG", str(tmp_path / "user.toml"))
    return tmp_path


def test_each_source_is_stronger_than_the_one_before(
    run: Run, diamond: Path, own_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def policy(*words: str) -> str:
        ran = run("plan", diamond, "-c", CLUSTER, "--output", "json", *words)
        assert ran.code == 0, ran.err
        return str(ran.json["policy"])

    assert policy() == "heft"
    (own_folder / "user.toml").write_text('[defaults]\npolicy = "peft"\n')
    assert policy() == "peft"
    (own_folder / "user.toml").write_text('[defaults]\npolicy = "peft"\n[plan]\npolicy = "dls"\n')
    assert policy() == "dls"
    (own_folder / "stretto.toml").write_text('[defaults]\npolicy = "etf"\n')
    assert policy() == "etf"
    monkeypatch.setenv("STRETTO_POLICY", "mcp")
    assert policy() == "mcp"
    monkeypatch.setenv("STRETTO_PLAN_POLICY", "olb")
    assert policy() == "olb"
    assert policy("--policy", "met") == "met"


def test_numbers_and_dashes_and_a_default_cluster(run: Run, diamond: Path, own_folder: Path) -> None:
    (own_folder / "stretto.toml").write_text(f'[plan]\ncluster = "{CLUSTER}"\ntime-limit = 0.1\nseed = 7\n')
    ran = run("plan", diamond, "--output", "json", "--policy", "annealing")
    assert ran.code == 0, ran.err
    assert ran.json["seed"] == 7
    assert ran.json["cluster"] == CLUSTER
    assert ran.json["plan_seconds"] < 9  # the policy has a limit of 10 s of its own


def test_help_shows_the_setting(run: Run, own_folder: Path) -> None:
    (own_folder / "stretto.toml").write_text('[defaults]\npolicy = "sufferage"\n')
    assert "sufferage" in run("plan", "--help").out


def test_a_default_cluster_does_not_make_a_trace_a_graph(run: Run, own_folder: Path) -> None:
    (own_folder / "stretto.toml").write_text('[defaults]\ncluster = "cpu:4"\n')
    trace = "trace:lublin?num_jobs=50&num_procs=16"
    ran = run("compare", trace, "--output", "quiet")
    assert ran.code == 0, ran.err
    assert run("compare", "workload:fft", "--policies", "heft", "--output", "quiet").out == "heft\n"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('[defaults]\npolcy = "heft"\n', ("polcy", "did you mean policy", "defaults.polcy")),
        ('[plam]\npolicy = "heft"\n', ("plam", "did you mean plan")),
        ('policy = "heft"\n', ("policy", "defaults")),
        ("[plan]\npolicy = [1]\n", ("[1]", "plan.policy")),
        ("[plan\n", ("not TOML", "line 1")),
        ('[plan]\nsave = "/etc/passwd"\n', ("save",)),
        ('[plan]\nseed = "many"\n', ("seed", "many")),
    ],
)
def test_mistakes_are_told_with_their_place(run: Run, own_folder: Path, text: str, words: tuple[str, ...]) -> None:
    (own_folder / "stretto.toml").write_text(text)
    ran = run("plan", "workload:fft", "-c", "cpu:2")
    ran.assert_refused(*words)


def test_a_missing_file_that_was_named_is_told(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STRETTO_CONFIG", "none.toml")
    run("plan", "workload:fft", "-c", "cpu:2").assert_refused("none.toml", "No such file")


def test_wrong_settings_do_not_stop_what_helps_to_mend_them(run: Run, own_folder: Path) -> None:
    (own_folder / "stretto.toml").write_text("[plan\n")
    assert run("config", "path").code == 0
    assert run("version").code == 0
    ran = run("doctor", "--output", "quiet")
    assert ran.code == 2
    assert "stretto.toml: not TOML" in ran.out


def test_show_says_where_values_come_from(run: Run, own_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (own_folder / "stretto.toml").write_text('[plan]\npolicy = "peft"\n')
    monkeypatch.setenv("STRETTO_SEED", "3")
    rows = {
        (row["option"], *row["commands"][:1]): row for row in run("config", "show", "plan", "--output", "json").json
    }
    assert rows["policy", "plan"] == {
        "option": "policy",
        "value": "peft",
        "source": "stretto.toml [plan]",
        "commands": ["plan"],
    }
    assert rows["seed", "plan"]["source"] == "environment STRETTO_SEED"
    assert rows["contention", "plan"]["source"] == "built in"
    everything = run("config", "show", "--output", "json").json
    assert {row["source"] for row in everything if row["option"] == "policy"} == {"built in", "stretto.toml [plan]"}
    assert run("config", "show", "plan", "--output", "quiet").out.split() == ["policy=peft", "seed=3"]
    run("config", "show", "lan").assert_refused("lan", "plan")
    assert "stretto.toml [plan]" in run("config", "show").out.replace("\n", " ")


def test_path_names_both_files(run: Run, own_folder: Path) -> None:
    found = run("config", "path", "--output", "json").json
    assert [(Path(row["path"]).name, row["exists"]) for row in found] == [("user.toml", True), ("stretto.toml", False)]
    assert run("config", "path", "--output", "quiet").out.strip() == str(own_folder / "user.toml")


def test_settings_of_other_commands_are_left_alone(own_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (own_folder / "stretto.toml").write_text("[defaults]\nseed = 1\n")
    found = read_settings({"a": frozenset({"seed"}), "b": frozenset({"output"})})
    assert found == {"a": {"seed": ConfigValue(1, "stretto.toml [defaults]")}, "b": {}}


def test_nothing_that_writes_can_be_set_from_a_folder() -> None:
    assert not CONFIGURABLE & {
        "save",
        "gantt",
        "out",
        "target",
        "trace",
        "checkpoint",
        "curves",
        "plot",
        "host",
        "port",
    }
