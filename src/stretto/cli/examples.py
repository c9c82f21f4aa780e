"""Examples of every command, for its ``--help``; the tests run those that need no file of the user."""

from __future__ import annotations

#: Command, and lines that can be pasted into a shell. ``{...}`` marks what the reader has to put in.
EXAMPLES: dict[str, tuple[str, ...]] = {
    "plan": (
        "stretto plan workload:montage -c cpu:8,gpu:2",
        "stretto plan 'workload:cholesky?num_tiles=10' -c cpu:6,gpu:2@12GB/s --policy annealing --time-limit 2",
        "stretto plan {workflow.json} -c {cluster.toml} --save plan.json --gantt plan.html",
    ),
    "place": (
        "stretto place workload:llama-block --devices gpu:4@16GB/s",
        "stretto place {model.onnx} --devices gpu:4 --dim batch=8 --emit json -o placement.json",
        "stretto place {model.py:build} --devices a100:2,l4:2 --allow-code --emit jax -o model.zip",
    ),
    "calibrate": ("stretto calibrate costs.json",),
    "compare": (
        "stretto compare workload:fft workload:lu -c cpu:4,gpu:1 --policies heft,peft,dls",
        "stretto compare 'trace:lublin?num_jobs=1000&num_procs=64' --strategies fcfs,sjf,saf",
        "stretto compare {jobs.swf.gz} --backfill easy,conservative --windows 10",
    ),
    "pipeline": ("stretto pipeline workload:ffnn -c gpu:4@16GB/s --microbatches 8",),
    "bound": (
        "stretto bound workload:montage -c cpu:8",
        "stretto bound 'workload:fft?num_points=4' -c cpu:2,gpu:1 --exact --time-limit 5",
    ),
    "simulate": (
        "stretto simulate {plan.json} --contention fair --noise 0.2",
        "stretto simulate {plan.json} --trace perfetto.json",
        "stretto simulate {plan.json} --trace schedule.paje",
    ),
    "train": (
        "stretto train doppler workload:ffnn -c gpu:4 --budget 60s --save plan.json",
        "stretto train doppler workload:ffnn -c gpu:4 --checkpoint run.npz",
        "stretto train doppler workload:ffnn -c gpu:4 --checkpoint run.npz --resume",
        "stretto train mars {jobs.swf.gz} --budget 10m --save nets.npz",
        "stretto train symphony two-nics --budget 5m --curves curves.png",
        "stretto train --continue {run-id} --budget 10m",
    ),
    "replay": (
        "stretto replay 'trace:lublin?num_jobs=1000&num_procs=64' --strategy saf",
        "stretto replay {jobs.swf.gz} --backfill conservative --estimates last-two",
        "stretto replay {jobs.swf.gz} --pools 'own:128*16,cloud:0-64*8@0.40~90s' --log",
        "stretto replay {jobs.swf.gz} --strategy mars --backfill promise",
        "stretto replay {jobs.swf.gz} --strategy mars --nets {nets.npz} --measure fairness --log",
    ),
    "when": (
        "stretto when 'trace:lublin?num_jobs=500&num_procs=64' --job 400 --learn-jobs 50",
        "stretto when {jobs.swf.gz} --job 4711 --backfill promise --if limit=2h",
        "stretto when {jobs.swf.gz} --at 36h --all --output json",
        "stretto when --slurm --job 1204 --history {jobs.sacct}",
    ),
    "rack": (
        "stretto rack small-rack --by symphony",
        "stretto rack paper-rack --by srpt-belief --stream 3",
        "stretto rack two-nics --by mct-belief --pace 200",
    ),
    "run": (
        "stretto run workload:montage -c cpu:4 --scale 0.001",
        "stretto run {workflow.toml} -c cpu:2 --policy heft",
        "stretto run {workflow.toml} --plan {plan.json}",
        "stretto run {workflow.wf.json} -c cpu:2 --commands",
        "stretto run workload:montage -c cpu:2 --scale 0.01 --telemetry",
        "stretto run --resume {run-id}",
    ),
    "logs": ("stretto logs {latest}", "stretto logs {latest} {align} --follow"),
    "engines": ("stretto engines", "stretto engines --output json"),
    "explain": (
        "stretto explain 'trace:lublin?num_jobs=500&num_procs=64'",
        "stretto explain {jobs.swf.gz} --job 900 --strategy fcfs",
        "stretto explain {jobs.swf.gz} --strategy mars --default saf --measure flow",
    ),
    "report": (
        "stretto report latest -o report.html",
        "stretto report {plan.json} {comparison.json} -o report.html --figures figures",
        "stretto report {jobs.swf.gz} --strategies fcfs,sjf,saf -o queue.html",
    ),
    "serve": (
        "stretto serve",
        "stretto serve --host 0.0.0.0 --token-file {token.txt}",
    ),
    "steer": (
        "stretto steer slurm --strategy saf --once",
        "stretto steer slurm --strategy portfolio --history {jobs.sacct} --apply",
        "stretto steer slurm --strategy mars --nets {nets.npz} --measure tail --once",
        "stretto steer slurm --rest https://slurm.example:6820 --token-file {token} --once",
        "stretto steer slurm --off",
    ),
    "testbed": (
        "stretto testbed slurm up",
        "stretto testbed slurm down",
    ),
    "show": (
        "stretto show workload:montage",
        "stretto show cpu:8,gpu:2@12GB/s",
        "stretto show {workflow.json}",
    ),
    "gantt": (
        "stretto gantt workload:montage -c cpu:6 -o montage.html",
        "stretto gantt {plan.json} -o plan.png",
    ),
    "convert": (
        "stretto convert workload:montage montage.json",
        "stretto convert {workflow.dax} workflow.wf.json",
    ),
    "nextflow": (
        "stretto nextflow {trace.txt} --config nextflow.config",
        "stretto nextflow {trace.txt} --work {work} --graph run.json",
        "stretto nextflow {trace.txt} --dag {flow.dot} -c {nodes.toml} --config nextflow.config",
    ),
    "list": (
        "stretto list policies",
        "stretto list strategies --output quiet",
    ),
    "demo": ("stretto demo", "stretto demo --train-seconds 0 --out pictures"),
    "doctor": ("stretto doctor", "stretto doctor --output json"),
    "help": ("stretto help exit-codes", "stretto help plan"),
    "version": ("stretto version", "stretto version --output json"),
    "config": ("stretto config show plan", "stretto config path"),
    "prices": (
        "stretto prices list {catalogue.tar.gz} --gpu A100 --region 'us-*'",
        "stretto prices pool {catalogue.tar.gz} --instance m5.4xlarge --nodes 0-16 > cloud.toml",
    ),
}

#: What ``stretto --help`` says of each command, in a line.
SUMMARIES = {
    "plan": "Plan a graph with one policy, and evaluate the plan.",
    "place": "Place a model on devices, and write it as a program.",
    "calibrate": "Measure the cost of operations on the devices of this machine.",
    "pipeline": "Divide a graph into stages for throughput.",
    "compare": "Rank policies on graphs, or strategies on a trace.",
    "bound": "Print a lower bound: a time that no schedule can beat.",
    "simulate": "Execute a saved plan in the simulator.",
    "train": "Train on a graph, a queue or a rack.",
    "replay": "Replay recorded jobs with a strategy.",
    "when": "Predict when waiting jobs will start, with an interval.",
    "rack": "Simulate jobs on a rack with hidden load.",
    "run": "Run a workflow, with a record from which it can resume.",
    "logs": "Print the output of the commands of a run.",
    "engines": "List the engines, and whether they can run here.",
    "explain": "Explain why a job waited, and what would have helped.",
    "report": "Write one page about runs, plans, comparisons or policies.",
    "serve": "Show runs in the browser, and serve the HTTP API.",
    "show": "Summarize a graph, workload, cluster, trace or site.",
    "gantt": "Draw which device runs which task, and when.",
    "convert": "Convert a graph from any readable format to a writable one.",
    "nextflow": "Read a Nextflow trace: its graph, and requests per process.",
    "list": "List policies, formats, workloads or rules for queues.",
    "demo": "Show an example: workloads, policies, a training.",
    "doctor": "Check the installation: versions, extras, engines, caches.",
    "help": "Explain a command, or what all commands share.",
    "version": "Print the version of Stretto and of its libraries.",
    "config": "Show the current settings and the files that contain them.",
    "prices": "Find offers of cloud machines, and write them as pools.",
    "steer": "Reorder the waiting jobs of a live queue; dry run by default.",
    "testbed": "Start and stop private engines for trying things out.",
}


def first_example(command: str) -> str | None:
    """Return a line to type, for an error that says what is missing."""
    lines = EXAMPLES.get(command)
    return lines[0].replace("{", "").replace("}", "") if lines else None


def epilog(command: str) -> str | None:
    """Return the examples as they stand at the end of a command's help; the mark keeps the lines apart."""
    lines = EXAMPLES.get(command)
    if not lines:
        return None
    shown = (line.replace("{", "").replace("}", "") for line in lines)
    return "\n".join(["\b", "Examples:", *(f"  {line}" for line in shown)])
