"""Priorities of jobs as Slurm's multifactor plugin computes them."""

from __future__ import annotations

import numpy as np

from stretto.core.site import Partition, Site
from stretto.core.site_policy import PriorityFactors
from stretto.queues.nodes.setup import NodeSetup
from stretto.queues.nodes.slurm_model.account_usage import AccountUsage
from stretto.queues.nodes.slurm_model.inputs import SlurmInputs


class SlurmPriority:
    """The priority of a job in a partition, as a whole number; 1 where no weight is set."""

    def __init__(self, inputs: SlurmInputs) -> None:
        setup = inputs.setup
        site: Site = setup.site
        self.factors = site.policy.priority or PriorityFactors()
        self.usage = AccountUsage(setup, self.factors.half_life_s) if self.factors.fair_share else None
        self.num_nodes, self.num_cpus = len(site.nodes), site.num_cpus
        self.top_factor = max(1, *(part.priority_job_factor for part in site.partitions))
        self.procs = setup.arrays.procs
        self.min_nodes = np.array(
            [
                sum(
                    int(inputs.shapes.min_nodes[inputs.alternatives(job, part)[0]])
                    for part in range(inputs.num_components(job))
                )
                for job in range(len(self.procs))
            ]
        )
        self.qos = self._qos(setup)

    def _qos(self, setup: NodeSetup) -> list[float]:
        n, trace = len(self.procs), setup.trace
        known = {item.name: item.priority for item in setup.site.policy.qos}
        top = max([1, *known.values()])
        if trace.qos is None or not self.factors.qos:
            return [0.0] * n
        names = trace.meta.get("qos_names", ())
        return [known.get(str(names[q]), 0) / top if 0 <= q < len(names) else 0.0 for q in trace.qos.tolist()]

    def note_start(self, job: int, now: float) -> None:
        """Charge a job to its account from now on."""
        if self.usage is not None:
            self.usage.start(job, now)

    def note_end(self, job: int, now: float) -> None:
        """Charge what a job has used."""
        if self.usage is not None:
            self.usage.end(job, now)

    def decay(self, now: float) -> None:
        """Let past usage fade, and charge what running jobs have used."""
        if self.usage is not None:
            self.usage.decay(now)

    def of(self, job: int, partition: Partition, age_s: float) -> int:
        """Return a job's priority after so long a wait."""
        weights = self.factors
        nodes, cpus = float(self.min_nodes[job]) / self.num_nodes, float(self.procs[job]) / self.num_cpus
        size = ((1 - nodes) + (1 - cpus)) / 2 if weights.favors_small else (nodes + cpus) / 2
        total = (
            weights.age * min(1.0, max(0.0, age_s) / weights.max_age_s)
            + weights.job_size * size
            + weights.partition * partition.priority_job_factor / self.top_factor
            + weights.qos * self.qos[job]
            + (weights.fair_share * self.usage.factor(job) if self.usage is not None else 0.0)
        )
        return max(1, int(total))
