"""Symphony: a belief about what cannot be seen, and a policy over machines and kernels that uses it."""
