"""Use cases, one file each, and what they share."""
