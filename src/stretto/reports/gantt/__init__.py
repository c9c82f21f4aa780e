"""Gantt charts, as pictures and as pages."""
