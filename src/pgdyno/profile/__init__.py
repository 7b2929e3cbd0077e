"""From samples, traces and counters to an account of a transaction's time."""
