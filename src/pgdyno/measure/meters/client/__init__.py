"""Meters of the load generator."""
