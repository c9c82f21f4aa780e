"""Compiled loops of this room: arrays in, arrays out."""
