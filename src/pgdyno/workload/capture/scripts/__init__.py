"""From scripts of pgbench to a workload. Pure."""
