"""Installations, instances and what they live in."""
