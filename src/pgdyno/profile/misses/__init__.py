"""From a trace of a process's accesses to memory to its data cache misses by structure. Pure."""
