"""Output of the other commands."""
