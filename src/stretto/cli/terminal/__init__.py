"""Text on a terminal: escaping, tables, progress, Ctrl-C."""
