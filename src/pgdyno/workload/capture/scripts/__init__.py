"""Derives a workload from pgbench scripts. Pure."""
