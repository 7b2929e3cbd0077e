"""Operation costs and CPU idling, measured rather than read."""
