"""Levers of the microarchitecture: caches, and where code and data lie in them."""
