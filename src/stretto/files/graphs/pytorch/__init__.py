"""PyTorch: exported modules, their costs, and traces of its profiler."""
