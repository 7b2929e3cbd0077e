"""Rates over levels: the knee, and laws that are fitted."""
