"""Numbers, names and series as words."""
