"""Nextflow: its execution trace, joined with what tells the edges, and configuration files."""
