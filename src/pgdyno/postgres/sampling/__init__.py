"""Readings from a running server: statistics, waits, sessions, plans and logs."""
