"""Engines run plans: a pure driver decides, an engine does what it says and reports what happened.

Read ``events.py`` (what goes in and out of the driver), ``driver.py`` (the state machine), ``work.py`` (what a task
is, when it is run for real) and ``engine.py`` (what an engine must offer), in this order.
"""
