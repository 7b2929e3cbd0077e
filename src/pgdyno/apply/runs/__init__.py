"""Making and undoing changes."""
