"""Levers of the system layer: kernel services for a server."""
