"""Installations, instances and their runtime environment; the home of pgdyno."""
