"""Readers that no entry point of Stretto uses yet: machines, counters, carbon intensity."""
