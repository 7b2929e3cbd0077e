"""Repeated readings from a running server."""
