"""Snakemake: what its directories say of earlier jobs, how long jobs will take, and its job graph."""
