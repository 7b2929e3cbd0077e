"""Levers of the compiler: how the server's program was made."""
