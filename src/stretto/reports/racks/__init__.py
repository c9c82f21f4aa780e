"""Pages about racks and hosts: estimated load, topology, episodes."""
