"""Queues in HPC-cloud pools that a caller leads from arrival to arrival, and promises that hold across pools."""
