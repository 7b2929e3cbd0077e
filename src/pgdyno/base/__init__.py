"""Errors, facts, units, ports, and numbers as text, for every subject. Standard library only."""
