"""What the host permits: private files, memory limits, isolated child processes."""
