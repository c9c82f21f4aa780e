"""``stretto train mars``: learn to order a queue from the first part of a log, and be judged on the rest."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from stretto.cli.console import Output, facts, print_json, remark, stdout

if TYPE_CHECKING:
    from stretto.domain.csr import Floats
    from stretto.domain.trace import Trace

#: What the result is set against.
_OPPONENTS = ("fcfs", "sjf", "saf", "f1", "f2", "f3", "f4", "wfp3", "expansion", "unicep")


def train_mars(
    source: str,
    *,
    time_limit_s: float,
    seed: int,
    path: Path | None,
    resume: bool,
    save: Path | None,
    output: Output,
) -> bool:
    """Train, judge and report; return whether the user stopped it."""
    from stretto.cli.progress import ProgressLine
    from stretto.cli.queue_sources import load_queue
    from stretto.cli.train import Patience
    from stretto.learned.mars.network import bold_nets, save_nets
    from stretto.learned.mars.replay import pretrained
    from stretto.training.mars_log import train_on_log

    whole = load_queue(source)
    num_procs = whole.max_procs or int(whole.num_procs.max())
    trace, _ = whole.fitting(num_procs)
    with Patience() as patience, ProgressLine(f"training mars on {int(0.6 * trace.num_jobs):,} jobs"):
        found = train_on_log(
            trace,
            num_procs,
            seed=seed,
            time_limit_s=time_limit_s,
            starts=[*pretrained(), *bold_nets()],
            path=path,
            resume=resume,
            is_stopped=lambda: patience.is_over,
        )
        nets = [*pretrained(), found.net]
        judged = _judge(trace, num_procs, nets)
    if save is not None:
        save_nets(save, nets, {"trace": trace.name, "seed": seed})
    name = min(_OPPONENTS, key=lambda one: judged[one])
    rate = found.num_jobs / found.seconds
    if output is Output.JSON:
        history = [row._asdict() | {"validation": _finite(row.validation)} for row in found.rows]
        document = {"trace": trace.name, "seed": seed, "train_seconds": found.seconds, "jobs_per_second": rate}
        print_json(document | {"mean_bounded_slowdown": judged, "best_fixed": name, "history": history})
    elif output is Output.QUIET:
        print(repr(judged["mars"]))
    else:
        change = judged["mars"] / judged[name] - 1
        lines = {
            "trained": f"{len(found.rows):,} generations, {found.num_jobs:,} scheduled jobs, {rate:,.0f}/s",
            "judged on": f"the last {trace.num_jobs - int(0.6 * trace.num_jobs):,} jobs: mean bounded slowdown",
            "the network alone": f"{judged['network']:,.2f}",
            "mars": f"{judged['mars']:,.2f}",
            "best fixed strategy": f"{judged[name]:,.2f} ({name}), so mars is {change:+.1%}",
            "fcfs": f"{judged['fcfs']:,.2f}",
        }
        stdout().print(facts(f"mars on {trace.name}", lines))
        for target in (path, save):
            if target is not None:
                stdout().print(f"  wrote {target}", soft_wrap=True)
    if patience.is_over:
        remark("interrupted: this is what was learned until then")
    return patience.is_over


def _judge(trace: Trace, num_procs: int, nets: list[Any]) -> dict[str, float]:
    """Replay the whole log and return the slowdowns of what was not trained on."""
    import numpy as np

    from stretto.domain.queue_metrics import BOUND_S
    from stretto.learned.mars.replay import candidates_of, mars_replay
    from stretto.sim.queue import replay
    from stretto.training.mars_log import SHARE

    first = int(SHARE * trace.num_jobs)

    def mean(start_s: Floats) -> float:
        run_s = trace.run_s[first:]
        flow_s = (start_s - trace.submit_s)[first:] + run_s
        return float(np.mean(np.maximum(1.0, flow_s / np.maximum(run_s, BOUND_S))))

    values = {name: mean(replay(trace, num_procs, strategy=name).start_s) for name in _OPPONENTS}
    values["network"] = mean(mars_replay(trace, num_procs, candidates=[nets[-1]]).start_s)
    values["mars"] = mean(mars_replay(trace, num_procs, candidates=candidates_of(nets=nets)).start_s)
    return values


def _finite(value: float) -> float | None:
    return value if value == value else None
