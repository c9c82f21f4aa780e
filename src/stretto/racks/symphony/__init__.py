"""Symphony: a belief about hidden load, and a policy that uses it."""
