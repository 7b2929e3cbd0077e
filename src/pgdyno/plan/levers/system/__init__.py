"""Levers of the operating system: kernel services for a server."""
