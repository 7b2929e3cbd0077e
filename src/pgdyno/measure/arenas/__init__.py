"""Arenas: servers under test, their data sets, and the load on them."""
