"""Promises: every waiting job has a latest start that no order may break."""
