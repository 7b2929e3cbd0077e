"""Account for a transaction's time from samples, traces and counters."""
