"""Data cache misses by structure, from a trace of a process's memory accesses. Pure."""
