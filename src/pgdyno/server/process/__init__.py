"""Installations, instances and their runtime environment."""
