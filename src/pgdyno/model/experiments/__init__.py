"""Studies, experiments and their results."""
