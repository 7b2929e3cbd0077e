"""Levers of the microarchitecture layer: caches, and the placement of code and data in them."""
