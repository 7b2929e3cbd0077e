"""Connections, and queries that become facts."""
