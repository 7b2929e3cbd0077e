"""Connections, and queries that return facts."""
