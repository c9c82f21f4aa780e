"""Dashboard and HTTP API over the run log and the verbs of ``stretto.api``."""
