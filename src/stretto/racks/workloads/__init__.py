"""Kernels, task graphs and streams of jobs for racks."""
