"""Scheduler plugin of Snakemake: ``snakemake --scheduler stretto``.

Jobs on the longest path start first, by durations learned from earlier runs; see docs/howto/snakemake.md. What decides
is in ``stretto.integrations.snakemake``; this module only connects it to Snakemake's interface.
"""

# No postponed annotations here: Snakemake reads the types of the settings to make its options.
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from snakemake_interface_common.io import AnnotatedStringInterface
from snakemake_interface_scheduler_plugins.base import SchedulerBase
from snakemake_interface_scheduler_plugins.interfaces.jobs import JobSchedulerInterface
from snakemake_interface_scheduler_plugins.settings import SchedulerSettingsBase

from stretto.integrations.snakemake.selector import SnakemakeSelector


@dataclass
class SchedulerSettings(SchedulerSettingsBase):
    """Options of the plugin: ``--scheduler-stretto-*``."""

    no_log: bool = field(
        default=False,
        metadata={"help": "Do not append finished jobs to .snakemake/stretto/jobs.jsonl, from which Stretto learns."},
    )


class Scheduler(SchedulerBase):
    """Starts the jobs on the longest path first, as many as fit."""

    def __post_init__(self) -> None:
        settings = self.settings if isinstance(self.settings, SchedulerSettings) else SchedulerSettings()
        self._selector = SnakemakeSelector(self.dag, self.logger, is_learning=not settings.no_log)
        self._selector.prepare()

    def select_jobs(
        self,
        selectable_jobs: Sequence[JobSchedulerInterface],
        remaining_jobs: Sequence[JobSchedulerInterface],
        available_resources: Mapping[str, int | str],
        input_sizes: dict[AnnotatedStringInterface, int],
    ) -> Sequence[Any] | None:
        """Return the jobs to start now, or None for Snakemake's greedy scheduler."""
        return self._selector.select(selectable_jobs, available_resources, input_sizes)
