"""Every component by name; strings only, so that listing them imports nothing.

Adding a policy is one file and one line here: the conformance tests, the command line
and the documentation follow from the line.
"""

from __future__ import annotations

_FORMATS = "stretto.formats"
_PLACEMENT = "stretto.policies.placement"
_QUEUEING = "stretto.policies.queueing"
_SEARCH = "stretto.policies.search"
_TRACES = "stretto.formats.traces"
_WORKLOADS = "stretto.workloads"

#: Planners: ``plan(problem, budget) -> Plan``.
PLANNERS: dict[str, str] = {
    "heft": f"{_PLACEMENT}.heft:Heft",
    "cpop": f"{_PLACEMENT}.cpop:Cpop",
    "peft": f"{_PLACEMENT}.peft:Peft",
    "lookahead": f"{_PLACEMENT}.lookahead:Lookahead",
    "etf": f"{_PLACEMENT}.etf:Etf",
    "dls": f"{_PLACEMENT}.dls:Dls",
    "mcp": f"{_PLACEMENT}.mcp:Mcp",
    "hlfet": f"{_PLACEMENT}.hlfet:Hlfet",
    "bil": f"{_PLACEMENT}.bil:Bil",
    "fcp": f"{_PLACEMENT}.fcp:Fcp",
    "flb": f"{_PLACEMENT}.flb:Flb",
    "minmin": f"{_PLACEMENT}.minmin:MinMin",
    "maxmin": f"{_PLACEMENT}.maxmin:MaxMin",
    "sufferage": f"{_PLACEMENT}.sufferage:Sufferage",
    "mct": f"{_PLACEMENT}.mct:Mct",
    "met": f"{_PLACEMENT}.met:Met",
    "olb": f"{_PLACEMENT}.olb:Olb",
    "critical-path": f"{_PLACEMENT}.critical_path:CriticalPath",
    "round-robin": f"{_PLACEMENT}.round_robin:RoundRobin",
    "random": f"{_PLACEMENT}.random_placement:RandomPlacement",
    "single-device": f"{_PLACEMENT}.single_device:SingleDevice",
    "portfolio": f"{_PLACEMENT}.portfolio:Portfolio",
    "annealing": f"{_SEARCH}.annealing:Annealing",
    "lns": f"{_SEARCH}.lns:LargeNeighbourhood",
    "tabu": f"{_SEARCH}.tabu:TabuSearch",
    "genetic": f"{_SEARCH}.genetic:Genetic",
    "cp-sat": "stretto.bounds.cpsat_planner:CpSat",
    "doppler": "stretto.training.doppler_planner:Doppler",
    "doppler-zero": "stretto.learned.doppler.zero:DopplerZero",
}

#: Algorithms that learn to plan one problem: ``trainer(problem, spec)``, see ``training/trainer.py``.
TRAINERS: dict[str, str] = {
    "doppler": "stretto.training.doppler_run:DopplerRun",
    "joint-doppler": "stretto.training.doppler_ablations:joint",
    "stepwise-doppler": "stretto.training.doppler_ablations:per_step",
    "placeto-style": "stretto.training.doppler_ablations:improver",
    "gdp-style": "stretto.training.doppler_ablations:one_shot",
}

#: Algorithms that learn to order a queue, for ``stretto train NAME TRACE``.
QUEUE_TRAINERS: dict[str, str] = {
    "mars": "stretto.training.mars_log:train_on_log",
}

#: Algorithms that learn to schedule a rack, for ``stretto train NAME CASE``.
RACK_TRAINERS: dict[str, str] = {
    "symphony": "stretto.training.symphony:SymphonyTrainer",
}

#: Readers and writers of graphs.
FORMATS: dict[str, str] = {
    "native": f"{_FORMATS}.native:FORMAT",
    "wfformat": f"{_FORMATS}.wfformat:FORMAT",
    "dax": f"{_FORMATS}.dax:FORMAT",
    "stg": f"{_FORMATS}.stg:FORMAT",
    "doppler": f"{_FORMATS}.doppler:FORMAT",
    "dot": f"{_FORMATS}.dot:FORMAT",
    "msr": f"{_FORMATS}.msr:FORMAT",
    "pipedream": f"{_FORMATS}.pipedream:FORMAT",
    "onnx": f"{_FORMATS}.onnx_model:FORMAT",
    "decima": f"{_FORMATS}.decima:FORMAT",
    "alibaba": f"{_FORMATS}.alibaba:FORMAT",
    "estee": f"{_FORMATS}.estee:FORMAT",
    "starpu": f"{_FORMATS}.starpu:FORMAT",
    "psplib": f"{_FORMATS}.psplib:FORMAT",
}

#: Built-in workload generators.
WORKLOADS: dict[str, str] = {
    "random-dag": f"{_WORKLOADS}.random_dag:random_dag",
    "erdos-renyi": f"{_WORKLOADS}.erdos_renyi:erdos_renyi",
    "series-parallel": f"{_WORKLOADS}.series_parallel:series_parallel",
    "cholesky": f"{_WORKLOADS}.cholesky:cholesky",
    "lu": f"{_WORKLOADS}.lu:lu",
    "qr": f"{_WORKLOADS}.qr:qr",
    "fft": f"{_WORKLOADS}.fft:fft",
    "gaussian-elimination": f"{_WORKLOADS}.gaussian_elimination:gaussian_elimination",
    "stencil": f"{_WORKLOADS}.stencil:stencil",
    "wavefront": f"{_WORKLOADS}.wavefront:wavefront",
    "fork-join": f"{_WORKLOADS}.fork_join:fork_join",
    "map-reduce": f"{_WORKLOADS}.map_reduce:map_reduce",
    "in-tree": f"{_WORKLOADS}.in_tree:in_tree",
    "out-tree": f"{_WORKLOADS}.out_tree:out_tree",
    "montage": f"{_WORKLOADS}.montage:montage",
    "epigenomics": f"{_WORKLOADS}.epigenomics:epigenomics",
    "cybershake": f"{_WORKLOADS}.cybershake:cybershake",
    "chain-matmul": f"{_WORKLOADS}.chain_matmul:chain_matmul",
    "ffnn": f"{_WORKLOADS}.ffnn:ffnn",
    "transformer": f"{_WORKLOADS}.transformer:transformer",
    "chainmm": f"{_WORKLOADS}.chainmm:chainmm",
    "ffnn-forward": f"{_WORKLOADS}.ffnn_forward:ffnn_forward",
    "llama-block": f"{_WORKLOADS}.llama:llama_block",
    "llama-layer": f"{_WORKLOADS}.llama:llama_layer",
}

#: Readers (and writers) of recorded queues, in the order in which contents are tried.
TRACES: dict[str, str] = {
    "parquet": f"{_TRACES}.parquet:FORMAT",
    "sacct": f"{_TRACES}.sacct:FORMAT",
    "sacct-json": f"{_TRACES}.sacct_json:FORMAT",
    "jobcomp": f"{_TRACES}.jobcomp:FORMAT",
    "openb": f"{_TRACES}.openb:FORMAT",
    "gpu-csv": f"{_TRACES}.philly:FORMAT",
    "swf": f"{_TRACES}.swf:FORMAT",
}

#: Generators of traces.
TRACE_GENERATORS: dict[str, str] = {
    "lublin": f"{_WORKLOADS}.lublin:lublin",
    "fitted": f"{_WORKLOADS}.fitted_trace:fitted",
}

#: Orders of a queue.
STRATEGIES: dict[str, str] = {
    "fcfs": f"{_QUEUEING}.strategies:FCFS",
    "sjf": f"{_QUEUEING}.strategies:SJF",
    "ljf": f"{_QUEUEING}.strategies:LJF",
    "saf": f"{_QUEUEING}.strategies:SAF",
    "laf": f"{_QUEUEING}.strategies:LAF",
    "smallest": f"{_QUEUEING}.strategies:SMALLEST",
    "largest": f"{_QUEUEING}.strategies:LARGEST",
    "expansion": f"{_QUEUEING}.strategies:EXPANSION",
    "wfp3": f"{_QUEUEING}.strategies:WFP3",
    "unicep": f"{_QUEUEING}.strategies:UNICEP",
    "f1": f"{_QUEUEING}.strategies:F1",
    "f2": f"{_QUEUEING}.strategies:F2",
    "f3": f"{_QUEUEING}.strategies:F3",
    "f4": f"{_QUEUEING}.strategies:F4",
    "edf": f"{_QUEUEING}.strategies:DEADLINE",
    "multifactor": f"{_QUEUEING}.strategies:MULTIFACTOR",
}

#: Choosers among orders of a queue; where a strategy is asked for, they may be named too.
SELECTORS: dict[str, str] = {
    "portfolio": f"{_QUEUEING}.portfolio:PORTFOLIO",
    "mars": "stretto.learned.mars.replay:MARS",
}

#: Those of them that can order a live queue: classes after ``QueueOrder`` of ``domain/queue_view.py``.
ONLINE_ORDERS: dict[str, str] = {
    "portfolio": f"{_QUEUEING}.online:PortfolioOrder",
    "mars": "stretto.learned.mars.online:MarsOrder",
}

#: What each of them plays a trace with: ``select(trace, num_procs, seed=...)``, and ``settings`` and ``run`` where it
#: knows them.
SELECTOR_REPLAYS: dict[str, str] = {
    "portfolio": f"{_QUEUEING}.portfolio:portfolio_replay",
    "mars": "stretto.training.mars_play:play_mars",
}

#: Ways of starting jobs before the head of a queue.
BACKFILLS: dict[str, str] = {
    "none": f"{_QUEUEING}.backfills:NONE",
    "easy": f"{_QUEUEING}.backfills:EASY",
    "easy-sjbf": f"{_QUEUEING}.backfills:EASY_SJBF",
    "conservative": f"{_QUEUEING}.backfills:CONSERVATIVE",
    "slack": f"{_QUEUEING}.backfills:SLACK",
}

#: What a queue's scheduler believes about run times.
ESTIMATES: dict[str, str] = {
    "user": f"{_QUEUEING}.estimates:USER",
    "perfect": f"{_QUEUEING}.estimates:PERFECT",
    "last-two": f"{_QUEUEING}.estimates:LAST_TWO",
    "quantile": f"{_QUEUEING}.estimates:QUANTILE",
}

#: Which of several pools a job prefers.
POOL_RULES: dict[str, str] = {
    "first": f"{_QUEUEING}.pool_rules:FIRST",
    "cheapest": f"{_QUEUEING}.pool_rules:CHEAPEST",
    "fastest": f"{_QUEUEING}.pool_rules:FASTEST",
    "burst": f"{_QUEUEING}.pool_rules:BURST",
    "pack": f"{_QUEUEING}.pool_rules:PACK",
}

#: Work with real kernels, for ``stretto run kernels:NAME?key=value``: functions that return an ``engines.work.Work``.
KERNELS: dict[str, str] = {
    "tiled-matmul": "stretto.engines.kernels.tiled_matmul:tiled_matmul_work",
    "llama-block": "stretto.engines.kernels.llama_block:llama_block_work",
}

#: Engines that run plans: classes after ``engines/engine.py``.
ENGINES: dict[str, str] = {
    "simulated": "stretto.engines.simulated:SimulatedEngine",
    "local": "stretto.engines.local.engine:LocalEngine",
    "dask": "stretto.engines.dask.engine:DaskEngine",
    "ray": "stretto.engines.ray.engine:RayEngine",
    "slurm": "stretto.engines.slurm.engine:SlurmEngine",
    "slurm-dask": "stretto.engines.slurm.pilot:SlurmDaskEngine",
}
