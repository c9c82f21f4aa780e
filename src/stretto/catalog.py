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
    "etf": "stretto.graphs.planners.rounds:Etf",
    "dls": "stretto.graphs.planners.rounds:Dls",
    "mcp": "stretto.graphs.planners.mcp:Mcp",
    "hlfet": "stretto.graphs.planners.appending:Hlfet",
    "bil": "stretto.graphs.planners.peft:Bil",
    "fcp": "stretto.graphs.planners.enabling:Fcp",
    "flb": "stretto.graphs.planners.enabling:Flb",
    "minmin": "stretto.graphs.planners.rounds:MinMin",
    "maxmin": "stretto.graphs.planners.rounds:MaxMin",
    "sufferage": "stretto.graphs.planners.rounds:Sufferage",
    "mct": "stretto.graphs.planners.appending:Mct",
    "met": "stretto.graphs.planners.appending:Met",
    "olb": "stretto.graphs.planners.appending:Olb",
    "critical-path": "stretto.graphs.planners.critical_path:CriticalPath",
    "round-robin": "stretto.graphs.planners.appending:RoundRobin",
    "random": "stretto.graphs.planners.appending:RandomPlacement",
    "single-device": "stretto.graphs.planners.appending:SingleDevice",
    "portfolio": "stretto.graphs.planners.portfolio:Portfolio",
    "annealing": "stretto.graphs.search.annealing:Annealing",
    "lns": "stretto.graphs.search.lns:LargeNeighbourhood",
    "tabu": "stretto.graphs.search.tabu:TabuSearch",
    "genetic": "stretto.graphs.search.genetic:Genetic",
    "cp-sat": "stretto.graphs.bounds.cpsat_planner:CpSat",
    "doppler": "stretto.graphs.doppler.planner:DopplerPlanner",
    "doppler-zero": "stretto.graphs.doppler.zero:DopplerZero",
}

#: Algorithms that learn: classes after the protocol of ``learning/trainer.py``, made from what they learn on and a
#: ``TrainingSpec``. Their ``learns_on`` says what that is: a ``graph`` (a problem), a ``queue`` (a log and its
#: processors), or a ``rack`` (a name).
TRAINERS: dict[str, str] = {
    "doppler": "stretto.graphs.doppler.run:DopplerRun",
    "mars": "stretto.queues.mars.run:MarsRun",
    "symphony": "stretto.racks.symphony.run:SymphonyRun",
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
    "nextflow": "stretto.files.graphs.nextflow.graph:FORMAT",
    "kineto": "stretto.files.graphs.pytorch.kineto:FORMAT",
    "execution-trace": "stretto.files.graphs.pytorch.execution_trace:FORMAT",
}

#: What a placement can be written as: ``emit(placement) -> bytes`` of each framework, for ``stretto place --emit``.
EMITTERS: dict[str, str] = {
    "json": "stretto.integrations.emit_json:emit",
    "jax": "stretto.integrations.emit_jax:emit",
    "torch": "stretto.integrations.emit_torch:emit",
    "accelerate": "stretto.integrations.emit_accelerate:emit",
    "onnx": "stretto.integrations.emit_onnx:emit",
}

#: Built-in workload generators.
WORKLOADS: dict[str, str] = {
    "random-dag": "stretto.graphs.workloads.random_dag:random_dag",
    "erdos-renyi": "stretto.graphs.workloads.erdos_renyi:erdos_renyi",
    "series-parallel": "stretto.graphs.workloads.series_parallel:series_parallel",
    "cholesky": "stretto.graphs.workloads.factorizations:cholesky",
    "lu": "stretto.graphs.workloads.factorizations:lu",
    "qr": "stretto.graphs.workloads.factorizations:qr",
    "fft": "stretto.graphs.workloads.fft:fft",
    "gaussian-elimination": "stretto.graphs.workloads.gaussian_elimination:gaussian_elimination",
    "stencil": "stretto.graphs.workloads.grids:stencil",
    "wavefront": "stretto.graphs.workloads.grids:wavefront",
    "fork-join": "stretto.graphs.workloads.phases:fork_join",
    "map-reduce": "stretto.graphs.workloads.phases:map_reduce",
    "in-tree": "stretto.graphs.workloads.trees:in_tree",
    "out-tree": "stretto.graphs.workloads.trees:out_tree",
    "montage": "stretto.graphs.workloads.workflows:montage",
    "epigenomics": "stretto.graphs.workloads.workflows:epigenomics",
    "cybershake": "stretto.graphs.workloads.workflows:cybershake",
    "chain-matmul": "stretto.graphs.workloads.tensors.chain_matmul:chain_matmul",
    "ffnn": "stretto.graphs.workloads.tensors.ffnn:ffnn",
    "transformer": "stretto.graphs.workloads.tensors.transformer:transformer",
    "chainmm": "stretto.graphs.workloads.tensors.chainmm:chainmm",
    "ffnn-forward": "stretto.graphs.workloads.tensors.ffnn_forward:ffnn_forward",
    "llama-block": "stretto.graphs.workloads.tensors.llama:llama_block",
    "llama-layer": "stretto.graphs.workloads.tensors.llama:llama_layer",
}

#: Readers (and writers) of sites, in the order in which contents are tried.
SITES: dict[str, str] = {
    "site": "stretto.files.clusters.site_toml:FORMAT",
    "scontrol": "stretto.files.clusters.scontrol_text:FORMAT",
    "slurm-conf": "stretto.files.clusters.slurm_conf:FORMAT",
    "openb-nodes": "stretto.files.clusters.openb_nodes:FORMAT",
    "alea-machines": "stretto.files.clusters.alea_machines:FORMAT",
}

#: What is no order, but stands beside orders in replays and comparisons: what really happened.
RECORDS: dict[str, str] = {"recorded": "stretto.queues.recorded.record:STRATEGY"}

#: Readers (and writers) of recorded queues, in the order in which contents are tried.
TRACES: dict[str, str] = {
    "parquet": "stretto.files.traces.parquet:FORMAT",
    "sacct": "stretto.files.traces.sacct:FORMAT",
    "sacct-json": "stretto.files.traces.sacct_json:FORMAT",
    "jobcomp": "stretto.files.traces.jobcomp:FORMAT",
    "kubernetes": "stretto.files.traces.kubernetes:FORMAT",
    "openb": "stretto.files.traces.openb:FORMAT",
    "alcf": "stretto.files.traces.alcf:FORMAT",
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
    "portfolio": "stretto.queues.strategies:PORTFOLIO",
    "mars": "stretto.queues.strategies:MARS",
}

#: Those of them that can order a live queue: classes after ``QueueOrder`` of ``queues/view.py``.
ONLINE_ORDERS: dict[str, str] = {
    "portfolio": "stretto.queues.live_order:PortfolioOrder",
    "mars": "stretto.queues.mars.live:MarsOrder",
}

#: What each of them plays a trace with: ``select(trace, num_procs, seed=...)``, and ``settings`` and ``run`` where it
#: knows them.
SELECTOR_REPLAYS: dict[str, str] = {
    "portfolio": "stretto.queues.portfolio:portfolio_replay",
    "mars": "stretto.queues.mars.replay:play_mars",
}

#: Ways of starting jobs before the head of a queue.
BACKFILLS: dict[str, str] = {
    "none": "stretto.queues.strategies:NO_BACKFILL",
    "easy": "stretto.queues.strategies:EASY",
    "easy-sjbf": "stretto.queues.strategies:EASY_SJBF",
    "conservative": "stretto.queues.strategies:CONSERVATIVE",
    "slack": "stretto.queues.strategies:SLACK",
    "promise": "stretto.queues.strategies:PROMISE",
}

#: What a queue's scheduler believes about run times.
ESTIMATES: dict[str, str] = {
    "user": "stretto.queues.strategies:USER",
    "perfect": "stretto.queues.strategies:PERFECT",
    "last-two": "stretto.queues.strategies:LAST_TWO",
    "quantile": "stretto.queues.strategies:QUANTILE",
}

#: Which of several pools a job prefers.
POOL_RULES: dict[str, str] = {
    "first": "stretto.queues.strategies:FIRST",
    "cheapest": "stretto.queues.strategies:CHEAPEST",
    "fastest": "stretto.queues.strategies:FASTEST",
    "burst": "stretto.queues.strategies:BURST",
    "pack": "stretto.queues.strategies:PACK",
    "owned": "stretto.queues.strategies:OWNED",
}

#: Dispatchers of racks, see ``racks/dispatch.py``. ``-counters`` trusts raw counters, ``-belief`` the belief
#: about hidden load; ``-true`` knows the true load, which only a simulation can.
DISPATCHERS: dict[str, str] = {
    "symphony": "stretto.racks.symphony.scheduler:SYMPHONY",
    "sparrow": "stretto.racks.rules:SPARROW",
    "graphene": "stretto.racks.rules:GRAPHENE",
    "paragon": "stretto.racks.rules:PARAGON",
    "mct": "stretto.racks.rules:MCT",
    "heft": "stretto.racks.rules:HEFT",
    "srpt": "stretto.racks.rules:SRPT",
    "mct-counters": "stretto.racks.rules:MCT_COUNTERS",
    "heft-counters": "stretto.racks.rules:HEFT_COUNTERS",
    "srpt-counters": "stretto.racks.rules:SRPT_COUNTERS",
    "mct-belief": "stretto.racks.rules:MCT_BELIEF",
    "srpt-belief": "stretto.racks.rules:SRPT_BELIEF",
    "mct-true": "stretto.racks.rules:MCT_TRUE",
    "srpt-true": "stretto.racks.rules:SRPT_TRUE",
}

#: Dispatchers of real runs, for ``stretto run --dispatch``: see ``engines/host/named.py``.
RUN_DISPATCHERS: dict[str, str] = {
    "symphony": "stretto.engines.host.named:SYMPHONY",
    "mct-belief": "stretto.engines.host.named:MCT_BELIEF",
    "heft-online": "stretto.engines.host.named:HEFT_ONLINE",
    "greedy": "stretto.engines.host.named:GREEDY",
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
