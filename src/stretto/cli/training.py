"""What a training shows: a progress bar while it goes on (on stderr, for people at a terminal), and its table."""

from __future__ import annotations

import math
import shlex
import sys
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Self, TypeVar

from stretto.api.train import TrainWatch
from stretto.cli.console import facts, remark
from stretto.cli.interrupt import Patience
from stretto.cli.progress import LiveLine, bar_line, format_clock, in_background
from stretto.core.answers.words import change
from stretto.core.units import better_or_worse, format_count, format_gap, format_percent, format_seconds, is_zero_gap

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.text import Text

    from stretto.api.train_result import TrainingResult
    from stretto.learning.trainer import StepRow

T = TypeVar("T")
#: Episodes per second are those of the last so many rows.
_RECENT = 20


class TrainingBar(LiveLine, TrainWatch):
    """Shows how much of the budget is used and what the last step reported; Ctrl-C ends the training after its step."""

    def __init__(self, doing: str, *, time_limit_s: float | None, episodes: int | None) -> None:
        super().__init__(doing)
        self.time_limit_s = time_limit_s
        self.episodes = episodes
        self.done = 0
        self.news = "compiling"
        self._recent: deque[tuple[float, int]] = deque(maxlen=_RECENT)
        self._patience = Patience()
        self._is_shown = False

    def __enter__(self) -> Self:
        self._open.enter_context(self._patience)
        return self

    def phase(self, doing: str) -> None:
        """Show what begins; the bar is drawn once there is nothing left to read."""
        if doing.startswith("training"):
            self.doing = doing
        else:
            self.news = doing
        if not self._is_shown and doing == "compiling" and sys.stderr.isatty():
            self._is_shown = True
            self._show()

    def row(self, row: StepRow) -> None:
        """Show the row of a step."""
        self._patience.has_result = True
        figures = row.figures
        if "best_s" in figures:
            words = [f"best {format_seconds(figures['best_s'])}", f"mean {format_seconds(figures['mean_s'])}"]
        else:
            words = [f"best {figures['best_validation']:.4g}"]
        self.tell(row.episode, [*words, format_count(row.episode, row.unit)], getattr(row, "stage", ""))

    def remark(self, text: str) -> None:
        """Print a line beside the bar."""
        remark(text)

    def is_stopped(self) -> bool:
        """Say whether Ctrl-C was pressed."""
        return self._patience.is_over

    def run_long(self, work: Callable[[], T]) -> T:
        """Run compiled work in another thread, so that Ctrl-C is answered at once."""
        return in_background(work)

    def tell(self, done: int, words: Sequence[str], stage: str = "") -> None:
        """Take what a step reported: how many episodes are done, and figures in words."""
        self.done = done
        self._recent.append((time.monotonic() - self._begin, done))
        (first_s, first), (last_s, last) = self._recent[0], self._recent[-1]
        rate = (last - first) / (last_s - first_s) if last_s > first_s else 0.0
        speed = [f"{rate:,.0f}/s" if rate >= 10 else f"{rate:,.2g}/s"] if rate > 0 else []
        self.news = ", ".join([*words, *speed, *([stage] if stage else [])])

    def line(self, width: int) -> Text:
        """Return the present line for a terminal of so many columns; its clock goes on while nothing is reported."""
        elapsed_s = time.monotonic() - self._begin
        clock, shares = format_clock(elapsed_s), [0.0]
        if self.time_limit_s is not None:
            clock += f" of {format_clock(self.time_limit_s)}"
            shares.append(elapsed_s / self.time_limit_s)
        if self.episodes is not None:
            shares.append(self.done / self.episodes)
        return bar_line(self.doing, max(shares), clock, self.news, width=width)


def training_table(result: TrainingResult) -> RenderableType:
    """Return the result for people."""
    if result.outcome is not None:
        title, rows = f"{result.name} by {result.outcome.policy}", _plan_facts(result)
    else:
        title = f"{result.algorithm} on {result.name}"
        rows = _queue_facts(result) if result.num_jobs else _rack_facts(result)
    if result.overrun is not None:
        rows["budget"] = result.overrun
    if result.run_id is not None:
        rows["run"] = result.run_id
    return facts(title, rows)


def _plan_facts(result: TrainingResult) -> dict[str, str]:
    outcome, judged = result.outcome, result.judged
    assert outcome is not None
    problem, value = outcome.problem, judged.others[judged.best_other]
    better = change(outcome.makespan_s, value, "shorter", "longer")
    rate = f", {result.num_episodes / result.seconds:,.0f}/s" if result.seconds > 0 else ""
    rows = {
        "graph": f"{format_count(problem.num_tasks, 'task')}, {format_count(problem.graph.num_edges, 'edge')}",
        "cluster": f"{problem.cluster.name} ({format_count(problem.num_devices, 'device')})",
        "trained": f"{format_count(result.num_episodes, 'episode')} in {format_seconds(result.seconds)}{rate}",
        "compiled in": format_seconds(result.compile_seconds),
        "makespan": format_seconds(outcome.makespan_s),
        "untrained": format_seconds(judged.untrained),
        f"best of {len(judged.others)} heuristics": f"{format_seconds(value)} ({judged.best_other}), "
        f"so this is {'as long' if better == 'equal to' else better}",
        "lower bound": f"{format_seconds(outcome.lower_bound_s)} ({outcome.bound.method})",
        "gap": f"0 %, {outcome.verdict}" if is_zero_gap(outcome.gap) else format_gap(outcome.gap),
    }
    if math.isnan(judged.untrained):  # a trainer that does not know its start
        del rows["untrained"]
    return rows


def _queue_facts(result: TrainingResult) -> dict[str, str]:
    from stretto.api.train_result import TRAINED_NET as TRAINED

    judged, best = result.judged, result.judged.best_other
    compared = better_or_worse(judged.uses["mars"], judged.others[best])
    generations = format_count(result.num_episodes, "generation")
    rest = result.trainer.num_held_out  # type: ignore[attr-defined]
    return {
        "machine": result.machine,
        "trained": f"{generations}, {result.num_jobs:,} scheduled jobs, {result.jobs_per_s:,.0f}/s",
        "judged on": f"the last {format_count(rest, 'job')}: mean bounded slowdown",
        f"the network {TRAINED!r}": f"{judged.trained:,.2f} alone; {judged.untrained:,.2f} untrained",
        "mars": _with_and_without(judged.uses),
        "best fixed strategy": f"{judged.others[best]:,.2f} ({best}), so mars is {compared}",
        "fcfs": f"{judged.others['fcfs']:,.2f}",
    }


def _with_and_without(uses: Mapping[str, float]) -> str:
    """Say what mars gets with the trained network and without it, and how sure the difference is."""
    ratio, low, high = (1.0 - uses[f"with / without{part}"] for part in ("", ", high", ", low"))
    both = f"with it {uses['mars']:,.2f}, without it {uses['mars without it']:,.2f}"
    if low == high == 0.0:
        return f"{both}: no difference"
    interval = f"95 %: {100 * low:,.1f} to {format_percent(high)} better"
    return f"{both}: {format_percent(abs(ratio))} {'better' if ratio >= 0 else 'worse'} ({interval})"


def _rack_facts(result: TrainingResult) -> dict[str, str]:
    judged, best = result.judged, result.judged.best_other
    compared = better_or_worse(judged.trained, judged.others[best])
    return {
        "trained": f"{format_count(result.num_episodes, 'iteration')} in {format_seconds(result.seconds)}",
        "judged on": f"{result.trainer.num_held_out} held-out streams: mean job completion time",  # type: ignore[attr-defined]
        "symphony": f"{judged.trained:,.3f} s",
        "untrained": f"{judged.untrained:,.3f} s",
        "best rule": f"{judged.others[best]:,.3f} s ({best}), so symphony is {compared}",
        "blind": f"{judged.others['mct']:,.3f} s (mct)",
    }


def replay_command(source: str, saved: object) -> str:
    """Return the command that follows a trained network."""
    from stretto.api.train_result import TRAINED_NET as TRAINED

    words = ("stretto", "replay", source, "--strategy", "mars", "--nets", str(saved), "--default", TRAINED)
    return shlex.join(words)
