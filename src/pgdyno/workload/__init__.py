"""Workloads: bundled, captured from a running server, copied and made up."""
