"""Pipelines: one graph run again and again for microbatches, each device holding one stage."""
