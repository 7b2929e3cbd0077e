"""Profile a workload or a server's own traffic: windows, counters, recordings."""
