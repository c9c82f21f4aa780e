"""Every component by name; strings only, so that listing them imports nothing.

Adding a policy is one file and one line here: the conformance tests, the command line
and the documentation follow from the line.
"""

from __future__ import annotations

#: Planners: ``plan(problem, budget) -> Plan``.
PLANNERS: dict[str, str] = {
    "heft": "stretto.graphs.planners.heft:Heft",
    "cpop": "stretto.graphs.planners.cpop:Cpop",
    "peft": "stretto.graphs.planners.peft:Peft",
    "lookahead": "stretto.graphs.planners.lookahead:Lookahead",
    "etf": "stretto.graphs.planners.etf:Etf",
    "dls": "stretto.graphs.planners.dls:Dls",
    "mcp": "stretto.graphs.planners.mcp:Mcp",
    "hlfet": "stretto.graphs.planners.hlfet:Hlfet",
    "bil": "stretto.graphs.planners.bil:Bil",
    "fcp": "stretto.graphs.planners.fcp:Fcp",
    "flb": "stretto.graphs.planners.flb:Flb",
    "minmin": "stretto.graphs.planners.minmin:MinMin",
    "maxmin": "stretto.graphs.planners.maxmin:MaxMin",
    "sufferage": "stretto.graphs.planners.sufferage:Sufferage",
    "mct": "stretto.graphs.planners.mct:Mct",
    "met": "stretto.graphs.planners.met:Met",
    "olb": "stretto.graphs.planners.olb:Olb",
    "critical-path": "stretto.graphs.planners.critical_path:CriticalPath",
    "round-robin": "stretto.graphs.planners.round_robin:RoundRobin",
    "random": "stretto.graphs.planners.random_placement:RandomPlacement",
    "single-device": "stretto.graphs.planners.single_device:SingleDevice",
    "portfolio": "stretto.graphs.planners.portfolio:Portfolio",
    "annealing": "stretto.graphs.search.annealing:Annealing",
    "lns": "stretto.graphs.search.lns:LargeNeighbourhood",
    "tabu": "stretto.graphs.search.tabu:TabuSearch",
    "genetic": "stretto.graphs.search.genetic:Genetic",
    "cp-sat": "stretto.graphs.bounds.cpsat_planner:CpSat",
    "doppler": "stretto.graphs.doppler.planner:Doppler",
    "doppler-zero": "stretto.graphs.doppler.zero:DopplerZero",
}

#: Algorithms that learn to plan one problem: ``trainer(problem, spec)``, see ``learning/trainer.py``.
TRAINERS: dict[str, str] = {
    "doppler": "stretto.graphs.doppler.run:DopplerRun",
    "joint-doppler": "stretto.graphs.doppler.ablations:joint",
    "stepwise-doppler": "stretto.graphs.doppler.ablations:per_step",
    "placeto-style": "stretto.graphs.doppler.ablations:improver",
    "gdp-style": "stretto.graphs.doppler.ablations:one_shot",
}

#: Algorithms that learn to order a queue, for ``stretto train NAME TRACE``.
QUEUE_TRAINERS: dict[str, str] = {
    "mars": "stretto.queues.mars.log_training:train_on_log",
}

#: Algorithms that learn to schedule a rack, for ``stretto train NAME CASE``.
RACK_TRAINERS: dict[str, str] = {
    "symphony": "stretto.racks.symphony.trainer:SymphonyTrainer",
}

#: Readers and writers of graphs.
FORMATS: dict[str, str] = {
    "native": "stretto.files.graphs.native:FORMAT",
    "wfformat": "stretto.files.graphs.wfformat:FORMAT",
    "dax": "stretto.files.graphs.dax:FORMAT",
    "stg": "stretto.files.graphs.stg:FORMAT",
    "doppler": "stretto.files.graphs.doppler:FORMAT",
    "dot": "stretto.files.graphs.dot:FORMAT",
    "msr": "stretto.files.graphs.msr:FORMAT",
    "pipedream": "stretto.files.graphs.pipedream:FORMAT",
    "onnx": "stretto.files.graphs.onnx_model:FORMAT",
    "decima": "stretto.files.graphs.decima:FORMAT",
    "alibaba": "stretto.files.graphs.alibaba:FORMAT",
    "estee": "stretto.files.graphs.estee:FORMAT",
    "starpu": "stretto.files.graphs.starpu:FORMAT",
    "psplib": "stretto.files.graphs.psplib:FORMAT",
}

#: Built-in workload generators.
WORKLOADS: dict[str, str] = {
    "random-dag": "stretto.graphs.workloads.random_dag:random_dag",
    "erdos-renyi": "stretto.graphs.workloads.erdos_renyi:erdos_renyi",
    "series-parallel": "stretto.graphs.workloads.series_parallel:series_parallel",
    "cholesky": "stretto.graphs.workloads.cholesky:cholesky",
    "lu": "stretto.graphs.workloads.lu:lu",
    "qr": "stretto.graphs.workloads.qr:qr",
    "fft": "stretto.graphs.workloads.fft:fft",
    "gaussian-elimination": "stretto.graphs.workloads.gaussian_elimination:gaussian_elimination",
    "stencil": "stretto.graphs.workloads.stencil:stencil",
    "wavefront": "stretto.graphs.workloads.wavefront:wavefront",
    "fork-join": "stretto.graphs.workloads.fork_join:fork_join",
    "map-reduce": "stretto.graphs.workloads.map_reduce:map_reduce",
    "in-tree": "stretto.graphs.workloads.in_tree:in_tree",
    "out-tree": "stretto.graphs.workloads.out_tree:out_tree",
    "montage": "stretto.graphs.workloads.montage:montage",
    "epigenomics": "stretto.graphs.workloads.epigenomics:epigenomics",
    "cybershake": "stretto.graphs.workloads.cybershake:cybershake",
    "chain-matmul": "stretto.graphs.workloads.tensors.chain_matmul:chain_matmul",
    "ffnn": "stretto.graphs.workloads.tensors.ffnn:ffnn",
    "transformer": "stretto.graphs.workloads.tensors.transformer:transformer",
    "chainmm": "stretto.graphs.workloads.tensors.chainmm:chainmm",
    "ffnn-forward": "stretto.graphs.workloads.tensors.ffnn_forward:ffnn_forward",
    "llama-block": "stretto.graphs.workloads.tensors.llama:llama_block",
    "llama-layer": "stretto.graphs.workloads.tensors.llama:llama_layer",
}

#: Readers (and writers) of recorded queues, in the order in which contents are tried.
TRACES: dict[str, str] = {
    "parquet": "stretto.files.traces.parquet:FORMAT",
    "sacct": "stretto.files.traces.sacct:FORMAT",
    "sacct-json": "stretto.files.traces.sacct_json:FORMAT",
    "jobcomp": "stretto.files.traces.jobcomp:FORMAT",
    "openb": "stretto.files.traces.openb:FORMAT",
    "gpu-csv": "stretto.files.traces.philly:FORMAT",
    "swf": "stretto.files.traces.swf:FORMAT",
}

#: Generators of traces.
TRACE_GENERATORS: dict[str, str] = {
    "lublin": "stretto.queues.workloads.lublin:lublin",
    "fitted": "stretto.queues.workloads.fitted_trace:fitted",
}

#: Orders of a queue.
STRATEGIES: dict[str, str] = {
    "fcfs": "stretto.queues.strategies:FCFS",
    "sjf": "stretto.queues.strategies:SJF",
    "ljf": "stretto.queues.strategies:LJF",
    "saf": "stretto.queues.strategies:SAF",
    "laf": "stretto.queues.strategies:LAF",
    "smallest": "stretto.queues.strategies:SMALLEST",
    "largest": "stretto.queues.strategies:LARGEST",
    "expansion": "stretto.queues.strategies:EXPANSION",
    "wfp3": "stretto.queues.strategies:WFP3",
    "unicep": "stretto.queues.strategies:UNICEP",
    "f1": "stretto.queues.strategies:F1",
    "f2": "stretto.queues.strategies:F2",
    "f3": "stretto.queues.strategies:F3",
    "f4": "stretto.queues.strategies:F4",
    "edf": "stretto.queues.strategies:DEADLINE",
    "multifactor": "stretto.queues.strategies:MULTIFACTOR",
}

#: Choosers among orders of a queue; where a strategy is asked for, they may be named too.
SELECTORS: dict[str, str] = {
    "portfolio": "stretto.queues.portfolio:PORTFOLIO",
    "mars": "stretto.queues.mars.replay:MARS",
}

#: Those of them that can order a live queue: classes after ``QueueOrder`` of ``queues/view.py``.
ONLINE_ORDERS: dict[str, str] = {
    "portfolio": "stretto.queues.live_order:PortfolioOrder",
    "mars": "stretto.queues.mars.online:MarsOrder",
}

#: What each of them plays a trace with: ``select(trace, num_procs, seed=...)``, and ``settings`` and ``run`` where it
#: knows them.
SELECTOR_REPLAYS: dict[str, str] = {
    "portfolio": "stretto.queues.portfolio:portfolio_replay",
    "mars": "stretto.queues.mars.play:play_mars",
}

#: Ways of starting jobs before the head of a queue.
BACKFILLS: dict[str, str] = {
    "none": "stretto.queues.backfills:NONE",
    "easy": "stretto.queues.backfills:EASY",
    "easy-sjbf": "stretto.queues.backfills:EASY_SJBF",
    "conservative": "stretto.queues.backfills:CONSERVATIVE",
    "slack": "stretto.queues.backfills:SLACK",
}

#: What a queue's scheduler believes about run times.
ESTIMATES: dict[str, str] = {
    "user": "stretto.queues.estimates:USER",
    "perfect": "stretto.queues.estimates:PERFECT",
    "last-two": "stretto.queues.estimates:LAST_TWO",
    "quantile": "stretto.queues.estimates:QUANTILE",
}

#: Which of several pools a job prefers.
POOL_RULES: dict[str, str] = {
    "first": "stretto.queues.pool_rules:FIRST",
    "cheapest": "stretto.queues.pool_rules:CHEAPEST",
    "fastest": "stretto.queues.pool_rules:FASTEST",
    "burst": "stretto.queues.pool_rules:BURST",
    "pack": "stretto.queues.pool_rules:PACK",
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
    "slurm": "stretto.engines.slurm.engine.engine:SlurmEngine",
    "slurm-dask": "stretto.engines.slurm.engine.pilot:SlurmDaskEngine",
}
