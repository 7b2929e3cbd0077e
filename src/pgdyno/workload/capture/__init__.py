"""From a server's counts of its load to a workload that can be replayed. Pure."""
