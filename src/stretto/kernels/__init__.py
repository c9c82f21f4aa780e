"""Compiled loops: arrays in, arrays out; no exceptions, strings or dicts inside."""
