"""Compiled loops of promises."""
