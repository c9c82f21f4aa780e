"""The scheduler plugin of Snakemake; only ``snakemake_scheduler_plugin_stretto`` imports Snakemake itself."""
