"""Cluster, machine and pool files."""
