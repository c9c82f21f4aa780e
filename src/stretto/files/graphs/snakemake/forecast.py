"""How long a job will take, learned from jobs of its rule: by rule, input size and wildcards, with uncertainty.

For each rule four models of log seconds are fitted (rule alone, input size, wildcards, both), and the one with the
least error in cross-validation is used; its error is the uncertainty. A job that was run before is forecast from its
own runs, weighted against the model by the two variances.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from stretto.files.graphs.snakemake.records import JobRecord

#: Runs of one rule that are looked at, the newest first: fitting must take milliseconds.
MAX_RUNS = 100
NUM_FOLDS = 5
#: Runs of one job that are looked at, the newest first.
MAX_OWN_RUNS = 10
#: The effect of a wildcard value is shrunk as if it had been seen once more without any effect.
PRIOR_RUNS = 1.0
#: Spread of log seconds between runs of one job where no job was run twice, and of a rule with a single run.
SAME_JOB_SD, ONE_RUN_SD = 0.2, 0.7
#: Beyond this the mean of a lognormal distribution is no estimate any more.
MAX_SD = 1.5
ASSUMED_S = 1.0

Wildcards = Mapping[str, str]


@dataclass(frozen=True)
class DurationForecast:
    """The forecast of one job: log seconds are normally distributed around ``log_s``.

    Attributes
    ----------
    basis
        What it rests on: ``own runs``, ``rule``, ``input size``, ``wildcards``, ``input size and wildcards``, or
        ``assumed`` where no job of the rule is known.
    """

    log_s: float
    log_sd: float
    basis: str

    @property
    def mean_s(self) -> float:
        """Expected seconds."""
        return math.exp(self.log_s + min(self.log_sd, MAX_SD) ** 2 / 2)


#: Of a job that runs nothing.
NOTHING = DurationForecast(-math.inf, 0.0, "no command")


@dataclass
class RuleModel:
    """Log seconds of the jobs of one rule: intercept, slope by log input size, effects of wildcard values."""

    intercept: float = 0.0
    slope: float = 0.0
    mean_size: float = 0.0
    effects: dict[tuple[str, str], float] = field(default_factory=dict)
    log_sd: float = ONE_RUN_SD
    basis: str = "rule"

    def log_s(self, wildcards: Wildcards | None, input_bytes: float | None) -> float:
        """Return the expected log seconds of a job."""
        value = self.intercept
        if input_bytes is not None and self.slope:
            value += self.slope * (math.log1p(input_bytes) - self.mean_size)
        for item in (wildcards or {}).items():
            value += self.effects.get(item, 0.0)
        return value


class DurationForecaster:
    """Forecasts jobs from the records of earlier ones.

    More records may be added at any time: a job's own runs count at once, the models of rules after :meth:`refresh`.
    """

    def __init__(self, records: Iterable[JobRecord] = ()) -> None:
        self._by_rule: dict[str, list[JobRecord]] = defaultdict(list)
        self._own: dict[tuple[str, str], list[float]] = defaultdict(list)
        self._models: dict[str, RuleModel] = {}
        self._stale: set[str] = set()
        self._typical: float | None = None
        self._same_job_sd: float | None = None
        for record in sorted(records, key=lambda item: item.end_unix_s):
            self.add(record)

    def add(self, record: JobRecord) -> None:
        """Learn from one more job."""
        runs = self._by_rule[record.rule]
        runs.append(record)
        del runs[:-MAX_RUNS]
        own = self._own[record.rule, record.output]
        own.append(math.log(record.seconds))
        del own[:-MAX_OWN_RUNS]
        self._stale.add(record.rule)

    def refresh(self) -> None:
        """Let the records that were added since change the models of their rules."""
        for rule in self._stale:
            self._models.pop(rule, None)
        self._stale.clear()
        self._typical = self._same_job_sd = None

    def knows(self, rule: str) -> bool:
        """Say whether there is a record of some job of the rule."""
        return rule in self._by_rule

    def forecast(
        self, rule: str, output: str = "", wildcards: Wildcards | None = None, input_bytes: float | None = None
    ) -> DurationForecast:
        """Return the forecast of a job."""
        if rule not in self._by_rule:
            return DurationForecast(self._typical_log_s(), ONE_RUN_SD, "assumed")
        model = self._models.get(rule)
        if model is None:
            model = self._models[rule] = fit_rule(self._by_rule[rule])
        prior, own = model.log_s(wildcards, input_bytes), self._own.get((rule, output))
        if not own:
            return DurationForecast(prior, model.log_sd, model.basis)
        noise = self._repeat_sd() ** 2
        weight = model.log_sd**2 / (model.log_sd**2 + noise / len(own)) if model.log_sd > 0 else 0.0
        mean = weight * sum(own) / len(own) + (1 - weight) * prior
        spread = math.sqrt(weight * noise / len(own) + noise)
        return DurationForecast(mean, spread, "own runs")

    def _typical_log_s(self) -> float:
        """Return the median of all jobs, for rules that nothing is known of."""
        if self._typical is None:
            means = [math.log(run.seconds) for runs in self._by_rule.values() for run in runs]
            self._typical = sorted(means)[len(means) // 2] if means else math.log(ASSUMED_S)
        return self._typical

    def _repeat_sd(self) -> float:
        """Return the spread between runs of one job, over all jobs that were run more than once."""
        if self._same_job_sd is None:
            squares, freedom = SAME_JOB_SD**2, 1.0
            for own in self._own.values():
                mean = sum(own) / len(own)
                squares += sum((value - mean) ** 2 for value in own)
                freedom += len(own) - 1
            self._same_job_sd = math.sqrt(squares / freedom)
        return self._same_job_sd


def fit_rule(runs: list[JobRecord]) -> RuleModel:
    """Return the model with the least error in cross-validation; of equals the simplest."""
    if len(runs) < 2:
        return _fit(runs, by_size=False, by_wildcards=False)
    best, least = None, math.inf
    for by_size, by_wildcards, basis in (
        (False, False, "rule"),
        (True, False, "input size"),
        (False, True, "wildcards"),
        (True, True, "input size and wildcards"),
    ):
        error = _error(runs, by_size, by_wildcards)
        if error < least * 0.999:
            best, least = (by_size, by_wildcards, basis), error
    assert best is not None
    model = _fit(runs, by_size=best[0], by_wildcards=best[1])
    model.basis = best[2]
    model.log_sd = math.sqrt((least * len(runs) + ONE_RUN_SD**2) / (len(runs) + 1))
    return model


def _error(runs: list[JobRecord], by_size: bool, by_wildcards: bool) -> float:
    """Return the mean squared error of log seconds in cross-validation, leaving one out where runs are few."""
    folds, total = min(NUM_FOLDS, len(runs)), 0.0
    for fold in range(folds):
        rest = [run for number, run in enumerate(runs) if number % folds != fold]
        model = _fit(rest, by_size=by_size, by_wildcards=by_wildcards)
        for run in runs[fold::folds]:
            total += (math.log(run.seconds) - model.log_s(run.wildcards, run.input_bytes)) ** 2
    return total / len(runs)


def _fit(runs: list[JobRecord], *, by_size: bool, by_wildcards: bool) -> RuleModel:
    logs = [math.log(run.seconds) for run in runs]
    model = RuleModel(intercept=sum(logs) / len(logs))
    if by_size:
        _fit_size(model, runs, logs)
    if by_wildcards:
        _fit_wildcards(model, runs, logs)
    return model


def _fit_size(model: RuleModel, runs: list[JobRecord], logs: list[float]) -> None:
    """Set the slope by log input size, by least squares over the runs whose size is known."""
    pairs = [
        (math.log1p(run.input_bytes), log) for run, log in zip(runs, logs, strict=True) if run.input_bytes is not None
    ]
    if len(pairs) < 3:
        return
    mean_x, mean_y = (sum(column) / len(pairs) for column in zip(*pairs, strict=True))
    square = sum((x - mean_x) ** 2 for x, _ in pairs)
    if square > 1e-9:
        model.slope = sum((x - mean_x) * (y - mean_y) for x, y in pairs) / square
        model.mean_size, model.intercept = mean_x, mean_y


def _fit_wildcards(model: RuleModel, runs: list[JobRecord], logs: list[float]) -> None:
    """Set the effect of each wildcard value on what is left, one wildcard after the other."""
    names = dict.fromkeys(name for run in runs for name in run.wildcards or {})
    for name in names:
        left: dict[tuple[str, str], list[float]] = defaultdict(list)
        for run, log in zip(runs, logs, strict=True):
            value = (run.wildcards or {}).get(name)
            if value is not None:
                left[name, value].append(log - model.log_s(run.wildcards, run.input_bytes))
        for item, values in left.items():
            model.effects[item] = sum(values) / (len(values) + PRIOR_RUNS)
