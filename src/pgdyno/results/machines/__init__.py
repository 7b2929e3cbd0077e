"""Comparison of two machines."""
