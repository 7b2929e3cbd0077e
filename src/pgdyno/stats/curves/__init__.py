"""Rates over levels: which levels to measure, the knee, and laws that are fitted."""
