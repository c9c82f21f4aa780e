"""What an operator can say of ``--strategy mars``: networks, the present policy, and what is to be least."""

from __future__ import annotations

import shlex
from pathlib import Path

import numpy as np
import pytest

from stretto.api.steer import make_order
from stretto.cli import completion
from stretto.core.trace import Trace
from stretto.errors import InvalidInput
from stretto.files import checkpoint
from stretto.queues.mars.candidates import candidates_of
from stretto.queues.mars.cost import MEASURES, JobCost
from stretto.queues.mars.kernels import score
from stretto.queues.mars.live import MarsOrder
from stretto.queues.mars.network import MarsNet, linear_net, save_nets
from stretto.queues.mars.replay import MarsSettings, mars_replay
from stretto.queues.replay import replay, replay_told

from .conftest import Run

QUEUE = "trace:lublin?num_jobs=1500&num_procs=64&load=1.1"


@pytest.fixture
def nets(tmp_path: Path) -> Path:
    """A file with one network, which prefers large jobs and leaves a tenth of the machine to short ones."""
    path = tmp_path / "nets.npz"
    save_nets(path, [specialist()], {"trace": "none", "seed": 0})
    return path


def specialist() -> MarsNet:
    return linear_net("specialist", {score.ESTIMATE: 1.0, score.WIDTH: 1.0}, reserve=0.1)


def test_a_network_from_a_file_is_a_candidate(run: Run, nets: Path) -> None:
    told = run("explain", QUEUE, "--strategy", "mars", "--nets", nets, "--output", "json").json
    assert "specialist" in told["choice"]["cost"]
    assert told["measure"] == "bounded-slowdown"


def test_an_explanation_agrees_with_the_table_below_it(run: Run) -> None:
    told = run("explain", QUEUE, "--strategy", "mars", "--window", "0:800", "--output", "json").json
    costs, rival, reason = (told["choice"][name] for name in ("cost", "rival", "reason"))
    others = [name for name in costs if name != told["followed"]]
    assert rival["name"] == min(others, key=lambda name: costs[name])
    assert rival["cost"] == costs[rival["name"]]
    assert told["choice"]["saved"] == pytest.approx(1 - costs[told["followed"]] / costs["fcfs"])
    said = " ".join(run("explain", QUEUE, "--strategy", "mars", "--window", "0:800").out.split())
    assert f"mars followed {told['followed']}" in said
    assert f"Why {told['followed']}: {reason}." in said


def test_the_default_and_the_measure_are_those_that_were_asked_for(run: Run, nets: Path) -> None:
    words = ("--nets", nets, "--default", "specialist", "--measure", "flow", "--money", "0.5")
    told = run("explain", QUEUE, "--strategy", "mars", "--job", "1", *words, "--output", "json").json
    assert told["choice"] is None, "nothing has been compared yet"
    assert told["measure"] == "flow"
    table = run("explain", QUEUE, "--strategy", "mars", *words)
    assert "hours from submission" in " ".join(table.out.split())
    found = run("replay", QUEUE, "--strategy", "mars", *words, "--output", "json").json
    said = {"nets": str(nets), "default": "specialist", "measure": "flow", "money": 0.5}
    assert said.items() <= found.items()
    assert found["policy"] == "specialist"
    assert sum(found["followed"].values()) == pytest.approx(1.0)
    assert isinstance(found["regret"], float)
    assert 0 <= found["trained_share"] <= 1
    settings = MarsSettings(str(nets), "specialist", JobCost("flow", money=0.5))
    trace = _trace()
    expected = mars_replay(trace, 64, candidates=settings.candidates(), cost=settings.cost)
    flow_s = expected.start_s - expected.trace.submit_s + expected.trace.run_s
    assert found["mean_flow_s"] == pytest.approx(flow_s.mean())
    table = " ".join(run("replay", QUEUE, "--strategy", "mars", *words).out.split())
    assert "flow" in table
    assert "against specialist; trained networks decided for" in table


def test_promises_are_kept_and_told(run: Run) -> None:
    words = (QUEUE, "--strategy", "mars", "--backfill", "promise", "--slack", "6h+1e", "--window", "0:600")
    found = run("replay", *words, "--output", "json").json
    assert (found["promises_given"], found["promises_broken"], found["slack"]) == (600, 0, "6h+1e")
    told = run("explain", *words, "--no-alternatives", "--output", "json").json
    assert told["promise"]["start_s"] <= told["promise"]["promised_s"]
    assert all(one["promised_s"] < told["promise"]["promised_s"] for one in told["promise"]["earlier"])
    table = " ".join(run("explain", *words, "--no-alternatives").out.split())
    assert f"Job {told['job']} was promised a start by" in table
    assert "So far the queue has cost" in table


def _trace() -> Trace:
    from stretto.queues.workloads.lublin import lublin

    return lublin(1500, seed=0, num_procs=64, load=1.1)


@pytest.mark.parametrize(
    "words",
    [
        ("--nets", "x.npz"),
        ("--default", "saf"),
        ("--measure", "flow"),
        ("--money", "1"),
        ("--price", "1"),
    ],
)
def test_other_strategies_have_no_such_options(run: Run, words: tuple[str, ...]) -> None:
    for strategy in ("saf", "portfolio"):
        run("replay", QUEUE, "--strategy", strategy, *words).assert_refused(words[0], "--strategy mars", strategy)
        run("steer", "slurm", "--strategy", strategy, *words).assert_refused(words[0], "--strategy mars")


def test_wrong_names_and_files_are_found_before_the_trace_is_read(run: Run, nets: Path, tmp_path: Path) -> None:
    text = tmp_path / "text.npz"
    text.write_text("no networks")
    other, nothing, twice = (tmp_path / f"{name}.npz" for name in ("other", "nothing", "twice"))
    checkpoint.save(other, {}, {"kind": "mars-training"})
    checkpoint.save(nothing, {}, {"kind": "mars"})
    save_nets(twice, [MarsNet("net-1", specialist().net)], {})
    for words, reasons in (
        (("--nets", tmp_path / "none.npz"), ("none.npz", "no such file")),
        (("--nets", text), ("text.npz",)),
        (("--nets", other), ("other.npz", "does not hold networks of MARS")),
        (("--nets", nothing), ("nothing.npz", "names of networks")),
        (("--nets", twice), ("two candidates are called 'net-1'",)),
        (("--default", "saff"), ("did you mean saf",)),
        (("--nets", nets, "--default", "specialst"), ("did you mean specialist",)),
        (("--measure", "flw"), ("did you mean flow",)),
        (("--price", "-1"), ("-1.0 must be finite",)),
    ):
        for command in (("replay", "none.swf", "--strategy", "mars"), ("explain", "none.swf", "--strategy", "mars")):
            run(*command, *words).assert_refused(*reasons)
    checkpoint.save(nothing, {}, {"kind": "mars", "nets": ["half"]})
    run("replay", "none.swf", "--strategy", "mars", "--nets", nothing).assert_refused("nothing.npz", "'half' has no")


def test_a_live_queue_is_ordered_as_the_operator_says(run: Run, nets: Path) -> None:
    order = make_order("mars", 1.0, MarsSettings(str(nets), "specialist", JobCost("fairness")))
    assert isinstance(order, MarsOrder)
    assert order.candidates is not None
    assert (order.candidates[0].name, order.cost.measure) == ("specialist", "fairness")
    assert all(one.net.reserve[0] == 0.0 for one in order.candidates), "who does not start jobs cannot hold them back"
    np.testing.assert_array_equal(order.candidates[0].net.weight, specialist().net.weight)


def test_what_is_not_as_usual_travels_with_the_result() -> None:
    trace = _trace().take(slice(0, 60))
    assert MarsSettings().spec() == {}
    assert replay(trace, 64, strategy="mars").spec == {
        **{"strategy": "mars", "backfill": "easy", "estimates": "user", "kill": False, "tie": "batch", "seed": 0}
    }
    settings = MarsSettings(default="saf", cost=JobCost("tail", 2.0))
    result, found = replay_told(trace, 64, strategy="mars", settings=settings)
    assert {"default": "saf", "measure": "tail", "time": 2.0}.items() <= result.spec.items()
    assert found.candidates[0] == "saf"
    for strategy in ("saf", "portfolio"):
        with pytest.raises(InvalidInput, match="has no settings"):
            replay_told(trace, 64, strategy=strategy, settings=settings)


def test_the_candidates_are_the_usual_ones_unless_something_is_said() -> None:
    for starts_jobs in (True, False):
        usual = candidates_of(starts_jobs=starts_jobs)
        said = MarsSettings().candidates(starts_jobs=starts_jobs)
        assert [net.name for net in said] == [net.name for net in usual]


def test_tab_offers_the_measures() -> None:
    assert tuple(MEASURES) == completion.MEASURES
    assert completion.measure_names("f") == ["flow", "fairness"]


def test_the_page_of_the_queue_tells_all_measures() -> None:
    page = (Path(__file__).parents[2] / "docs" / "queue.md").read_text()
    section = page.partition("## MARS\n")[2].partition("\n## ")[0]
    for name in MEASURES:
        assert f"| `{name}` |" in section
    for option in ("--nets", "--default", "--measure", "--money", "--price", "--slack"):
        assert f"`{option}" in section


def test_what_train_calls_its_network_is_known_elsewhere(run: Run, tmp_path: Path) -> None:
    """The name in the file, in the report and after --default are one."""
    source, nets = "trace:lublin?num_jobs=300&num_procs=32", tmp_path / "nets.npz"
    ran = run("train", "mars", source, "--budget", "0.1s", "--no-log", "--save", nets)
    assert ran.code == 0, ran.err
    assert "the network 'trained'" in ran.out
    (line,) = (line for line in ran.out.splitlines() if "follow it: " in line)
    words = shlex.split(line.partition("follow it: ")[2])[1:]
    assert words[-2:] == ["--default", "trained"]
    again = run(*words, "--output", "json")
    assert (again.code, again.json["default"]) == (0, "trained"), again.err
    without = ("replay", source, "--strategy", "mars", "--default", "trained")
    run(*without).assert_refused("--nets FILE", "stretto train mars --save")
