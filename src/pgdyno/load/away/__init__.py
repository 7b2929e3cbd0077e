"""Turns of pgdyno-driver on other hosts."""
