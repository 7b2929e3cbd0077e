"""Use cases with more than one machine."""
