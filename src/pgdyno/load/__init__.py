"""Load generators, and taking turns between their loads."""
