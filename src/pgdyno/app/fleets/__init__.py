"""Measure a fleet: trials leased to workers, answers checked and stored."""
