"""How root reads and writes files that are others'."""
