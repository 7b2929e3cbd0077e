"""Derives a replayable workload from a server's statistics, a log or scripts. Pure."""
