"""Levers of the compiler layer: how the server's program was built."""
