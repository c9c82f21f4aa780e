"""Readers that no entry point of Stretto uses yet: machines and counters."""
