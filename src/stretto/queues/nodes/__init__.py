"""Queues on the nodes and partitions of a site, where jobs take processors, memory and GPUs of nodes."""
