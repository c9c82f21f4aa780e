"""Prints the job graph of a workflow as JSON: ``python -m stretto.files.graphs.snakemake.dump SNAKEFILE DIRECTORY``.

A process of its own, since Snakemake changes the directory, the log handlers and the modules of the one it runs in.
Nothing is executed, apart from the code in the Snakefile itself.
"""

from __future__ import annotations

import contextlib
import io
import json
import sys
from pathlib import Path

from stretto.files.graphs.snakemake.jobs import JobGraph, SnakemakeJob, is_empty, rule_of, wildcards_of

#: The line of the output that holds the graph begins so; Snakefiles may print, too.
MARK = "stretto-snakemake-jobs "

#: Cores that Snakemake is told to have, so that no job is given fewer threads than it asks for.
MAX_CORES = 2**15


def job_rows(dag: JobGraph) -> list[dict[str, object]]:
    """Return every job that has to be run, with its files, needs and dependencies."""
    jobs = list(dag.needrun_jobs())
    index = {job: number for number, job in enumerate(jobs)}
    return [_row(job, sorted(index[other] for other in dag.job_dependencies(job) if other in index)) for job in jobs]


def _row(job: SnakemakeJob, parents: list[int]) -> dict[str, object]:
    benchmark = getattr(job, "benchmark", None)
    return {
        "rule": rule_of(job),
        "wildcards": dict(wildcards_of(job)),
        "input": [str(item) for item in job.input],
        "output": [str(item) for item in job.output],
        "benchmark": str(benchmark) if benchmark else None,
        "needs": {name: value for name, value in job.scheduler_resources.items() if isinstance(value, int | float)},
        "is_empty": is_empty(job),
        "parents": parents,
    }


def read_jobs(snakefile: Path, directory: Path) -> list[dict[str, object]]:
    """Let Snakemake build the graph of all jobs, whether they are up to date or not."""
    from snakemake.api import SnakemakeApi
    from snakemake.settings.types import DAGSettings, OutputSettings, ResourceSettings

    with SnakemakeApi(OutputSettings(show_failed_logs=False)) as api:
        workflow = api.workflow(ResourceSettings(cores=MAX_CORES), snakefile=snakefile, workdir=directory)
        dag = workflow.dag(DAGSettings(forceall=True))
        with contextlib.redirect_stdout(io.StringIO()):
            dag.printd3dag()  # builds the graph
        return job_rows(workflow._workflow.dag)


if __name__ == "__main__":
    print(MARK + json.dumps(read_jobs(Path(sys.argv[1]), Path(sys.argv[2]))))
