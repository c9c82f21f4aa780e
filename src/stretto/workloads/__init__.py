"""Generators of task graphs and clusters; :func:`generate` makes one of the named library.

The functions below carry the names of their modules on purpose: importing them here
binds the package's attribute to the function before any submodule import can hide it.
"""

from stretto.graphs.workloads.generate import generate
from stretto.graphs.workloads.random_cluster import random_cluster
from stretto.graphs.workloads.random_dag import random_dag
from stretto.graphs.workloads.unrelated import unrelated

__all__ = ["generate", "random_cluster", "random_dag", "unrelated"]
