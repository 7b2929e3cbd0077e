"""Two machines beside each other."""
