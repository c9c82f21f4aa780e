"""Files and live graphs, in and out: one module per format."""
