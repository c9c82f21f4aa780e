"""What exists: graphs, clusters, problems, plans, schedules, metrics."""
