"""Obtaining and checking sources."""
