"""Judges the hosts of a cell by their answers. Pure."""
