"""Doppler: two policies place the operations of a graph, and are trained to do it better."""
