"""Plans within memory limits: what a device must hold, packings, and the repair of plans that do not fit."""
