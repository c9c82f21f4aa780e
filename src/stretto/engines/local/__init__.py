"""The local engine: one thread or process per device, pinned to a core, fed by the driver."""
