"""Levers of the operating system: what the kernel does for, or with, a server."""
