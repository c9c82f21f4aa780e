"""Every kind of report, written from the sample runs: for the checks of what a report needs, and of how it reads."""

from __future__ import annotations

import json
from pathlib import Path

import stretto
from stretto.cli.main import main
from stretto.reports.page.view import run_view
from stretto.reports.plots.training import draw_training
from stretto.runlog import RunLog

CLUSTER = "cpu:6x1.0,gpu:2x5.0"


def write_reports(runs: Path, ids: dict[str, str], folder: Path) -> dict[str, Path]:
    """Write one report per run, one of several runs, and those that are not about runs; return them by name."""
    found = {f"report-{name}": folder / f"{name}.html" for name in ids}
    for name, run_id in ids.items():
        stretto.report([run_id], found[f"report-{name}"], runs=runs)

    def page(name: str) -> Path:
        return found.setdefault(f"report-{name}", folder / f"{name}.html")

    plans = [ids[f"plan-{policy}"] for policy in ("heft", "cpop", "round-robin")]
    stretto.report(plans, page("several"), runs=runs)
    plan = ["plan", "workload:cholesky?num_tiles=6", "-c", CLUSTER, "--save", str(folder / "plan.json")]
    assert main([*plan, "--output", "quiet"]) == 0
    compared = stretto.compare(["workload:fft", "workload:lu"], CLUSTER, ["heft", "etf"])
    (folder / "compared.json").write_text(json.dumps(compared.to_json()))
    stretto.report([folder / "plan.json", folder / "compared.json"], page("files"))
    stretto.report("trace:lublin?num_jobs=300&num_procs=64", page("policies"), strategies=["fcfs", "saf"])
    stretto.gantt("workload:cholesky?num_tiles=6", page("gantt"), cluster=CLUSTER)
    with RunLog.open(runs) as log:
        training = run_view(log, ids["train-0"])["training"]
    assert training is not None
    series = {one["name"]: one["values"] for one in training["series"]}
    rows = [
        {"episode": x, "seconds": seconds, "stage": stage} | {name: values[k] for name, values in series.items()}
        for k, (x, seconds, stage) in enumerate(zip(training["x"], training["seconds"], training["stage"], strict=True))
    ]
    draw_training(rows, page("curves"), baselines={"heft": 2.6})
    return found
