"""Programs that are run, and stages that are kept."""
