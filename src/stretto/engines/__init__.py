"""Engines run plans: a pure driver decides, an engine executes its instructions and reports what happened.

Read ``driver/events.py`` (what goes in and out of the driver), ``driver/driver.py`` (the state machine), ``work.py``
(what a task is when it is run for real) and ``engine.py`` (what an engine must offer), in this order.
"""
