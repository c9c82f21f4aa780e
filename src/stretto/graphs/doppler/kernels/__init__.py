"""Compiled episodes of Doppler."""
