"""Processes, their programs, and running programs for pgdyno."""
