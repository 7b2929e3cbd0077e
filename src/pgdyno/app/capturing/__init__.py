"""Capture the workload of a running server, and replay it on a copy."""
