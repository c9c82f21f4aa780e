"""What exists: graphs, clusters, problems, plans, schedules, traces, pools, and their validators."""
