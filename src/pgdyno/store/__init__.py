"""Experiments, bundles, workloads, hosts and tunings on disk."""
