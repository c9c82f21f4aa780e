"""Orders of a queue, one row each; the formulas stand in ``queues.kernels.keys`` and ``queues.kernels.fairshare``."""

from __future__ import annotations

from stretto.queues.kernels import keys
from stretto.queues.kernels.codes import MULTIFACTOR as MULTIFACTOR_CODE
from stretto.queues.rules import Strategy

FCFS = Strategy(keys.FCFS, "first come, first served")
SJF = Strategy(keys.SHORTEST, "shortest estimate first")
LJF = Strategy(keys.LONGEST, "longest estimate first")
SAF = Strategy(keys.SMALLEST_AREA, "smallest area (estimate x processors) first")
LAF = Strategy(keys.LARGEST_AREA, "largest area (estimate x processors) first")
SMALLEST = Strategy(keys.FEWEST_PROCS, "fewest processors first")
LARGEST = Strategy(keys.MOST_PROCS, "most processors first")
EXPANSION = Strategy(keys.EXPANSION, "largest expansion factor (wait + estimate) / estimate first")
WFP3 = Strategy(keys.WFP3, "largest (wait / estimate)^3 x processors first (Tang et al. 2009)")
UNICEP = Strategy(keys.UNICEP, "largest wait / (log2(processors) x estimate) first (Tang et al. 2009)")
F1 = Strategy(keys.F1, "F1 of Carastan-Santos and de Camargo 2017")
F2 = Strategy(keys.F2, "F2 of Carastan-Santos and de Camargo 2017")
F3 = Strategy(keys.F3, "F3 of Carastan-Santos and de Camargo 2017")
F4 = Strategy(keys.F4, "F4 of Carastan-Santos and de Camargo 2017")
DEADLINE = Strategy(keys.DEADLINE, "earliest deadline first; jobs without one last")
MULTIFACTOR = Strategy(MULTIFACTOR_CODE, "age, size and fair share, weighted, as in Slurm", uses_weights=True)
