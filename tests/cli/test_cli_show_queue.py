"""``show`` and ``convert`` of traces and sites."""

from __future__ import annotations

from pathlib import Path

import pytest

import stretto
from files.clusters.site_samples import ALL as SITES
from files.clusters.site_samples import SCONTROL, SLURM_CONF
from files.traces.trace_samples import ALL as TRACES
from files.traces.trace_samples import SACCT, assert_same_jobs
from stretto.core.results.trace_facts import TraceFacts
from stretto.core.site import Site
from stretto.errors import InvalidInput
from stretto.queues.env.batch import Episode

from .conftest import Run


def put(folder: Path, name: str, text: str) -> Path:
    path = folder / name
    path.write_text(text)
    return path


@pytest.mark.parametrize("name", TRACES)
def test_every_trace_is_shown_at_eighty_columns(
    run: Run, tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    path = put(tmp_path, "jobs.dat", TRACES[name])
    ran = run("show", path)
    assert (ran.code, ran.err) == (0, "")
    assert max(map(len, ran.out.splitlines())) <= 80
    for word in ("format", "jobs", "span", "work", "width"):
        assert f"  {word} " in ran.out
    found = run("show", path, "--output", "json").json
    assert (found["what"], found["format"]) == ("trace", name)
    assert run("show", path, "--output", "quiet").out.strip() == str(found["num_jobs"])
    facts = stretto.show(path)
    assert isinstance(facts, TraceFacts)
    assert facts.num_jobs == found["num_jobs"]


def test_what_is_missing_and_what_was_left_out_is_said(run: Run, tmp_path: Path) -> None:
    row = "8|8|x|y|cpu|normal|{}|Unknown|Unknown|5|1:00:00|1|1|1|1G|COMPLETED||\n"
    path = put(tmp_path, "jobs.sacct", SACCT + row.format("never") + row.format("soon") + "9|9|short\n")
    found = run("show", path, "--output", "json").json
    assert found["num_skipped"] == 3
    assert [(part["num_rows"], part["line"]) for part in found["skipped"]] == [(2, 7), (1, 9)]
    assert "1 rows of steps, which are part of their jobs" in found["notes"]
    assert found["missing"][0].startswith("the size of the machine")
    assert found["gpus"] == {"a100": 2, "v100": 1, "t4": 2}
    assert {part["name"]: part["num_jobs"] for part in found["partitions"]} == {"gpu": 1, "cpu": 3}
    text = " ".join(run("show", path).out.split())
    assert "left out 2 rows, the first at line 7: 'never' is not a time" in text


@pytest.mark.parametrize("name", SITES)
def test_every_site_is_shown_at_eighty_columns(
    run: Run, tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    path = put(tmp_path, "site.dat", SITES[name])
    ran = run("show", path)
    assert (ran.code, ran.err) == (0, "")
    assert max(map(len, ran.out.splitlines())) <= 80
    found = run("show", path, "--output", "json").json
    assert found["what"] == "site"
    assert run("show", path, "--output", "quiet").out.strip() == str(found["num_nodes"])
    site = stretto.show(path)
    assert isinstance(site, Site)
    assert site.num_cpus == found["num_cpus"]


def test_slurm_s_text_becomes_a_site_file(run: Run, tmp_path: Path) -> None:
    for name, text in (("slurm.conf", SLURM_CONF), ("scontrol.txt", SCONTROL)):
        out = tmp_path / f"{name}.toml"
        ran = run("convert", put(tmp_path, name, text), out)
        assert ran.code == 0, ran.err
        assert "nodes" in ran.out
        assert "note: " in ran.err
        assert stretto.load_site(out) == stretto.load_site(tmp_path / name)
    run("convert", tmp_path / "slurm.conf", tmp_path / "site.dot").assert_refused("ends with .toml")
    run("convert", tmp_path / "slurm.conf", out, "--dim", "batch=8").assert_refused("dim")


@pytest.mark.parametrize("name", TRACES)
def test_traces_are_kept_whole_as_parquet(run: Run, tmp_path: Path, name: str) -> None:
    pytest.importorskip("pyarrow")
    path, out = put(tmp_path, "jobs.dat", TRACES[name]), tmp_path / "jobs.parquet"
    ran = run("convert", path, out, "--output", "json")
    assert (ran.code, ran.json["lost"]) == (0, [])
    again = stretto.load_trace(out)
    assert_same_jobs(stretto.load_trace(path), again)
    assert ran.json["num_jobs"] == again.num_jobs


def test_what_swf_cannot_hold_is_said(run: Run, tmp_path: Path) -> None:
    ran = run("convert", put(tmp_path, "jobs.sacct", SACCT), tmp_path / "jobs.swf")
    assert ran.code == 0
    for said in ("GPUs", "accounts", "QOS", "requests", "names behind the numbers"):
        assert said in ran.err
    again = stretto.load_trace(tmp_path / "jobs.swf")
    assert again.run_s.tolist() == stretto.load_trace(tmp_path / "jobs.sacct").run_s.tolist()


def test_a_graph_becomes_jobs_where_the_target_is_a_trace(run: Run, tmp_path: Path) -> None:
    ran = run("convert", "workload:cholesky?num_tiles=3", tmp_path / "jobs.swf", "--output", "json")
    assert ran.json["num_jobs"] == 10
    assert stretto.load_trace(tmp_path / "jobs.swf", dependencies=True).child is not None


def test_objects_will_do_as_well(tmp_path: Path) -> None:
    trace = stretto.load_trace("trace:lublin?num_jobs=20&num_procs=16")
    assert stretto.convert(trace, tmp_path / "t.swf").trace is trace
    site = stretto.load_site(put(tmp_path, "slurm.conf", SLURM_CONF))
    assert stretto.convert(site, tmp_path / "s.toml").site is site
    found = stretto.show(trace)
    assert isinstance(found, TraceFacts)
    assert (found.num_jobs, found.max_procs) == (20, 16)
    assert stretto.show(site) is site
    with pytest.raises(InvalidInput, match="only ONNX"):
        stretto.show(trace, dims={"batch": 1})


def test_environments_ask_for_the_size_of_the_machine(tmp_path: Path) -> None:
    path = put(tmp_path, "jobs.sacct", SACCT)
    with pytest.raises(InvalidInput, match=r"does not say on how many processors it ran .*num_procs=N"):
        Episode(trace=path, num_jobs=1).jobs()
