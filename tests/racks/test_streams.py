"""Streams: padding, arrivals, foreign load, and graphs from elsewhere as streams."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from stretto.core.graph import TaskGraph
from stretto.core.machine_presets import preset
from stretto.core.workload import Workload
from stretto.errors import InvalidInput, UnknownName
from stretto.files.load import load
from stretto.racks.machine_work import rack_model
from stretto.racks.rules import play
from stretto.racks.workloads.graphs import PAPER_MIX, attack_tagger, eeg_graph, variant_calling
from stretto.racks.workloads.kernels import PAPER_KERNELS
from stretto.racks.workloads.streams import ForeignLoad, StreamSpec, kernel_codes, streams_of

SPEC = StreamSpec(num_jobs=5)


def _model():
    return rack_model(preset("small-rack"), PAPER_KERNELS)


def test_every_job_of_a_stream_is_one_of_the_graphs():
    streams = streams_of(_model(), PAPER_MIX, SPEC, num_instances=6, seed=0)
    sizes = {graph.num_tasks for graph in PAPER_MIX}
    for i in range(6):
        assert set(streams.job_size[i].tolist()) <= sizes
        counted = np.bincount(streams.job[i], minlength=6)[:5]
        np.testing.assert_array_equal(counted, streams.job_size[i])
        before = np.zeros(len(streams.kernel[i]), int)
        np.add.at(before, streams.after[i, : streams.after_ptr[i, -1]], 1)
        np.testing.assert_array_equal(before, streams.num_before[i])
    assert np.all(np.diff(streams.arrival_s, axis=1) >= 0)


def test_foreign_load_is_on_for_its_share_of_the_time():
    foreign = ForeignLoad(share=0.3, level={"memory": (0.5, 0.5)}, period_s=5.0)
    streams = streams_of(_model(), PAPER_MIX, replace(SPEC, foreign=foreign), num_instances=10, seed=0)
    span = np.diff(streams.flow_s, axis=2)
    is_on = streams.flow_level[:, :, :-1] > 0
    assert set(np.unique(streams.flow_level)) == {0.0, 0.5}
    memory = [f for f, kind in enumerate(_model().source_kind) if kind == "memory"]
    share = (span * is_on)[:, memory].sum() / span[:, memory].sum()
    assert share == pytest.approx(0.3, abs=0.06)


def test_more_utilization_brings_jobs_closer():
    spans = [
        streams_of(_model(), PAPER_MIX, replace(SPEC, utilization=u), num_instances=20, seed=0).arrival_s[:, -1].mean()
        for u in (0.3, 0.9)
    ]
    assert spans[0] == pytest.approx(3 * spans[1], rel=1e-6)


def test_the_ranks_of_a_pipeline_fall_along_it():
    model = _model()
    streams = streams_of(model, [variant_calling(1)], replace(SPEC, num_jobs=1), num_instances=1, seed=0)
    ranks = streams.rank_s[0]
    assert np.all(np.diff(ranks[[0, 1, 2, 4, 5]]) < 0)


@pytest.mark.parametrize(
    ("folder", "name"),
    [
        ("taskgraphs", "decima-tpch-2g.json.gz"),
        ("taskgraphs", "alibaba2018-random-6600.jsonl.gz"),
        ("wfformat", "makeflow__blast__blast-chameleon-small-001.json.gz"),
    ],
)
def test_real_graphs_run_as_streams(data_dir, folder, name):
    work = load(data_dir / folder / name)
    jobs = [job.graph for job in work.jobs] if isinstance(work, Workload) else [work]
    graphs = [graph for graph in jobs if graph.num_tasks <= 60][:10]
    model = _model()
    streams = streams_of(model, graphs, replace(SPEC, num_jobs=3), num_instances=2, seed=0, is_scaled=True)
    assert np.all(play("mct", model, streams, seed=0) > 0)


def test_tables_map_categories_to_kernels():
    graph = TaskGraph.from_edges([1.0, 1.0], [0], [1], categories=("a", "b"), category=np.array([0, 1], np.int32))
    model = _model()
    codes = kernel_codes(graph, model, {"a": "pairhmm", "b": "alignment"})
    assert [model.kernels[code].name for code in codes] == ["pairhmm", "alignment"]
    with pytest.raises(UnknownName, match="pairhmm"):
        kernel_codes(graph, model, {"a": "pair-hmm", "b": "alignment"})


@pytest.mark.parametrize("make", [variant_calling, eeg_graph, attack_tagger])
def test_widths_are_checked(make):
    assert make(3).num_tasks > make(2).num_tasks
    with pytest.raises(InvalidInput, match="width"):
        make(0)
