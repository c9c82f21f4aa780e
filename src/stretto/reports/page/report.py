"""A report: runs of the log, plan files and comparisons, gathered as views and tables."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from stretto.core.answers.logged import logged_answer
from stretto.core.plan import Plan
from stretto.core.problem import Problem
from stretto.core.schedule import Schedule
from stretto.errors import InvalidInput
from stretto.reports.page.html import render
from stretto.reports.page.spreads import compared_answer, compared_runs
from stretto.reports.page.tables import Compared, Table, comparison_tables, comparisons, runs_tables
from stretto.reports.page.view import add_plan, run_view
from stretto.reports.page.view_types import RunView, new_view
from stretto.reports.page.why import explanations
from stretto.reports.plots.comparisons import compared_figures
from stretto.reports.plots.runs import draw_figures, save_figures
from stretto.reports.problem import has_problem, plan_of, problem_of
from stretto.reports.record import COMPARISON, plan_summary
from stretto.reports.strict_json import unpacked
from stretto.runlog import RunLog
from stretto.runlog.record import Json


@dataclass
class RunReport:
    """Gathers runs and comparisons, and writes them as one page and as figures."""

    views: list[RunView] = field(default_factory=list)
    tables: list[Table] = field(default_factory=list)
    commands: list[str] = field(default_factory=list)
    answers: list[str] = field(default_factory=list)
    _compared: list[Compared] = field(default_factory=list)
    _planned: dict[int, tuple[Problem, Schedule]] = field(default_factory=dict)

    def add_run(self, log: RunLog, run_id: str) -> None:
        """Add a run of the log."""
        info = log.run(run_id)
        view = run_view(log, info.id)
        self._command(view["settings"]["command"])
        planned = None
        if has_problem(log, info.id) and view["is_planned"]:
            problem = problem_of(log, info.id)
            found = plan_of(log, info.id, problem)
            planned = (problem, found[1]) if found is not None else None
        self._add(view, planned)
        compared = log.artifact(info.id, COMPARISON)
        if compared is not None:
            self._compared += comparisons(unpacked(compared, COMPARISON), COMPARISON)

    def add_plan(
        self, name: str, problem: Problem, plan: Plan, schedule: Schedule, document: Mapping[str, Json], command: str
    ) -> None:
        """Add a plan out of a file."""
        summary = plan_summary({**document, "makespan_s": schedule.makespan_s})
        settings = {"policy": document.get("policy"), "cluster": problem.cluster.name, "seed": document.get("seed")}
        view = new_view(
            {
                "id": name,
                "answer": logged_answer("done", document),
                "kind": "plan",
                "name": problem.graph.name,
                "status": "done",
                "started_s": Path(name).stat().st_mtime,
                "ended_s": None,
                "num_events": 0,
                "settings": settings,
                "summary": {**summary, "discipline": plan.discipline},
            }
        )
        view["is_planned"] = True
        add_plan(view, problem, schedule, summary.get("lower_bound_s"))
        self._command(command)
        self._add(view, (problem, schedule))

    def add_comparison(self, document: Mapping[str, Json], name: str) -> None:
        """Add what ``stretto compare --output json`` wrote."""
        self.answers.append(logged_answer("done", document))
        self.tables += comparison_tables(document, name)
        self._compared += comparisons(document, name)

    def _add(self, view: RunView, planned: tuple[Problem, Schedule] | None) -> None:
        if planned is not None:
            view["why"] = explanations(*planned)
            view["can_explain"] = view["why"] is not None
            self._planned[len(self.views)] = planned
        self.views.append(view)

    def _command(self, command: object) -> None:
        if isinstance(command, str) and command not in self.commands:
            self.commands.append(command)

    @property
    def all_answers(self) -> list[str]:
        """The answers of runs, plans and comparisons, without those that have none yet."""
        return [answer for answer in (*(view["answer"] for view in self.views), *self.answers) if answer]

    def page(self, title: str | None) -> bytes:
        """Return everything as one page."""
        alone = len(self.views) == 1 and not self.tables
        chosen = title or (self.views[0]["name"] if alone else "Stretto report")
        together = compared_answer(compared_runs(self.views))  # several runs have titles of their own
        answers = self.all_answers if len(self.views) == 1 else [together, *self.answers]
        return render(chosen, self.views, [*runs_tables(self.views), *self.tables], self.commands, answers)

    def draw(self, folder: Path) -> list[Path]:
        """Write the figures of all runs and comparisons; a source without any is no error as long as another has some.

        Raises
        ------
        InvalidInput
            Nothing here has figures.
        """
        found: list[Path] = []
        for number, view in enumerate(self.views):
            stem = view["name"] if len(self.views) == 1 else f"{number + 1}-{view['name']}"
            found += draw_figures(view, folder, stem=stem, planned=self._planned.get(number))
        for number, compared in enumerate(self._compared):
            stem = compared.title if len(self._compared) == 1 else f"{number + 1}-{compared.title}"
            found += save_figures(compared_figures(compared), folder, stem=stem)
        if not found:
            raise InvalidInput(
                "nothing here has figures: give a plan, a comparison, or a run that planned, executed, replayed or "
                "trained something",
                field="--figures",
            )
        return found
