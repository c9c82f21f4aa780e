"""Make the networks that come with Stretto, and those of the folds by which they are judged.

    python research/mars/make_ensemble.py --out research/mars/folds.npz --folds a,b,c     # each without some logs
    python research/mars/make_ensemble.py --out src/stretto/queues/mars/ensemble.npz      # on all logs

Windows of 2,500 jobs are drawn from every log; arrivals of some are pressed together, so that loads differ, and 1 % of
the jobs is left out. A network, and for how many short jobs long ones leave room, are learned by
CMA-ES, two windows per log and generation, half of them without promises and half inside promises of 24h+4e. What is
least: the logarithm of the bounded slowdown over that of the best fixed order on the window, plus penalties for a
longest wait of more than twice that of FCFS with EASY, for a higher 99th percentile of waits, and for a lower index of
Jain. What is kept is the running mean of the search's mean.

The networks that are shipped: ``net-1`` to ``net-3`` are the three of the folds, each trained on two thirds of the logs
and stopped by the clock after 9, 6 and 5 generations; ``net-4`` is the mean of an earlier search of 30, 28 and 6
generations per fold, with a share of the machine for short jobs, which was then set to nothing.
"""

from __future__ import annotations

import argparse
import os
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parents[1]), str(HERE.parents[1] / "benchmarks")]

from promises import Measured, measured  # noqa: E402
from queue_logs import find_logs, fixed_starts, read_log  # noqa: E402
from research.mars.folds import FOLDS  # noqa: E402

from stretto.core.csr import Floats  # noqa: E402
from stretto.core.trace import Trace  # noqa: E402
from stretto.learning.cma import Cma  # noqa: E402
from stretto.queues.mars.candidates import network_candidate  # noqa: E402
from stretto.queues.mars.network import MarsNet, save_nets  # noqa: E402
from stretto.queues.mars.trainer import to_net  # noqa: E402
from stretto.queues.mars.windows import starts_of  # noqa: E402
from stretto.queues.promises.slack import Slack  # noqa: E402

WINDOW_JOBS, WINDOWS_PER_LOG = 2500, 14
#: Where the search begins, in its own units: the linear weights over three, and the number of short jobs.
START = np.array([-0.9, -0.4, 0.0, 0.0, -0.75, 0.0, 0.0, 0.0, 0.0, 0.1, 1.0])
SCALE = np.array([*np.full(10, 0.25), 0.5])
SIGMA, POPULATION = 0.6, 12
#: Generations after which the mean of the search enters a running mean, and what the latest counts.
BURN_IN, LATEST = 5, 0.2
LONGEST_RATIO, PENALTY = 2.0, 0.3
#: Windows in which FCFS waits longer take long and teach little.
MOST_WAIT_S = 14 * 3600.0


@dataclass(frozen=True, eq=False)
class LogWindow:
    """Jobs of a log, and what fixed orders make of them."""

    log: str
    trace: Trace
    num_procs: int
    fcfs: Measured
    best: float

    def loss(self, net: MarsNet, slack: Slack) -> float:
        """Return what a network costs here."""
        start = starts_of(self.trace, self.num_procs, network_candidate(net), slack)
        found, base = measured(self.trace.arrays(), start), self.fcfs
        slowdown = float(np.log(found.slowdown / self.best))
        longest = float(np.log((found.longest_wait_s + 600.0) / (base.longest_wait_s + 600.0)))
        if slack.time_s == np.inf:
            return slowdown + 0.1 * max(0.0, longest - np.log(3.0))
        p99 = float(np.log((found.p99_wait_s + 600.0) / (base.p99_wait_s + 600.0)))
        jain = float(np.log(found.jain / base.jain))
        return slowdown + PENALTY * (max(0.0, longest - np.log(LONGEST_RATIO)) + max(0.0, p99) + max(0.0, -jain))


def draw(data: Path, seed: int = 7) -> list[LogWindow]:
    """Draw windows of all logs in which jobs wait."""
    rng = np.random.default_rng(seed)
    found: list[LogWindow] = []
    for path in find_logs(data):
        trace, num_procs = read_log(path)
        if path.name.startswith("CERIT"):  # its header does not tell its machine
            continue
        count = 0
        for attempt in range(40):
            if count == WINDOWS_PER_LOG:
                break
            size = min(WINDOW_JOBS, trace.num_jobs)
            first = int(rng.integers(0, trace.num_jobs - size + 1))
            pressed = float(rng.choice([1.0, 1.0, 0.85, 0.7]))
            if path.name.startswith(("OSC", "LPC")):
                pressed *= float(rng.choice([1.0, 0.5, 0.3]))
            window = _window(path.name, trace.window(first, size), num_procs, attempt, pressed)
            if window.fcfs.slowdown >= 1.15 and window.fcfs.mean_wait_s <= MOST_WAIT_S:
                found.append(window)
                count += 1
    return found


def _window(log: str, trace: Trace, num_procs: int, seed: int, pressed: float) -> LogWindow:
    kept = np.random.default_rng(seed).random(trace.num_jobs) >= 0.01
    kept[0] = True
    trace = trace.keep(kept)
    first = trace.submit_s[0]
    trace = replace(trace, submit_s=first + pressed * (trace.submit_s - first))
    jobs = trace.arrays()
    fixed = {name: measured(jobs, start) for name, start in fixed_starts(jobs, num_procs).items()}
    return LogWindow(log, trace, num_procs, fixed["fcfs"], min(one.slowdown for one in fixed.values()))


def net_of_vector(vector: Floats, name: str) -> MarsNet:
    """Return the network of a point of the search."""
    scaled = vector.copy()
    scaled[:10] *= 3.0
    return to_net(scaled, name)


def train(windows: list[LogWindow], name: str, generations: int, seed: int, threads: int) -> MarsNet:
    """Learn one network."""
    rng = np.random.default_rng(seed)
    search = Cma(START, SIGMA, SCALE, POPULATION)
    mean = START.copy()
    by_log: dict[str, list[LogWindow]] = {}
    for window in windows:
        by_log.setdefault(window.log, []).append(window)
    slacks = (Slack(np.inf), Slack.parse("24h+4e"))
    with ThreadPoolExecutor(threads) as executor:
        for generation in range(generations):
            picked = [
                (some[k], slacks[int(rng.integers(2))])
                for some in by_log.values()
                for k in rng.choice(len(some), min(2, len(some)), replace=False)
            ]
            samples = search.ask(rng)

            def losses(vector: Floats, picked: list[tuple[LogWindow, Slack]] = picked) -> list[float]:
                net = net_of_vector(vector, name)
                return [window.loss(net, slack) for window, slack in picked]

            found = np.array(list(executor.map(losses, samples)))
            search.tell(np.clip(found - np.median(found, axis=0), -1.0, 1.0).mean(axis=1))
            mean = (1 - LATEST) * mean + LATEST * search.mean if generation > BURN_IN else search.mean.copy()
            print(f"{name} {generation}: {found.mean():.3f}, sigma {search.sigma:.2f}", file=sys.stderr, flush=True)
    return net_of_vector(mean, name)


def main() -> None:
    """Train and write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    data = Path(os.environ.get("STRETTO_DATA", HERE.parents[2] / "shared/data"))
    parser.add_argument("--data", type=Path, default=data)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--folds", default="", help="folds to leave out, one training each; none = one on all logs")
    parser.add_argument("--generations", type=int, default=16)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--threads", type=int, default=2)
    options = parser.parse_args()
    windows = draw(options.data)
    nets = []
    for fold in options.folds.split(","):
        rest = [one for one in windows if not fold or not one.log.startswith(FOLDS[fold])]
        name = f"{fold}-net-1" if fold else "net-1"
        nets.append(train(rest, name, options.generations, options.seed, options.threads))
    about = {"folds": options.folds, "generations": options.generations, "seed": options.seed}
    save_nets(options.out, nets, about)


if __name__ == "__main__":
    main()
