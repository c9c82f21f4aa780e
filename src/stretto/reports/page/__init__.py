"""Pages about runs: what they show, as JSON values, and the HTML around it."""
