"""Profile a workload: where a transaction's time goes."""
