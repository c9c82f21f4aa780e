"""Rules of queues: orders, backfilling, estimates, choice of pool; one row each, named in the catalog."""
