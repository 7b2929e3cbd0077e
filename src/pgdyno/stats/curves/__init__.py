"""Rates by level: which levels to measure, the knee, and fitted laws."""
