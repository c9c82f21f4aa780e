"""A prototype: queues on the nodes and partitions of a site, where jobs take processors, memory and GPUs on nodes.

``reference.py`` defines it, ``kernels/`` is the compiled form, ``validate.py`` checks results without either. It knows
all static and wait-dependent orders, no backfilling and EASY, dependencies, arrays with a limit, heterogeneous jobs,
exclusive nodes and maintenance; it is to move into ``stretto.queues`` when traces and the command line can use it.
"""
