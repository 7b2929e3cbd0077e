"""Processes and the programs that they run."""
