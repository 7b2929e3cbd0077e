"""Processes, the programs that they run, and programs that pgdyno runs."""
