"""Keeping idle CPUs awake."""
