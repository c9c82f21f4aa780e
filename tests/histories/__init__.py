"""The whole system under virtual time: seeded histories with injected faults, invariants checked after every step.

A history is a list of events and faults that a seed determines (``history.py``). It is played in one process and one
thread of the operating system: processes and threads of the system under test are greenlets on a virtual clock
(``clock.py``). Production code runs unchanged; replaced are the clock, threads, processes, the disk and the commands of
Slurm (``boundaries.py``, ``resource_manager.py``). A failing history is (commit, seed) and is shrunk:

    python -m tests.histories SEED
"""
