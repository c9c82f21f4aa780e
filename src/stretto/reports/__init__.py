"""Pages, tables and pictures about results."""
