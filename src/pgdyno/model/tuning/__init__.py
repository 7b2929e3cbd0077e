"""A search for the best configuration: its space, its trials, and its shortened result."""
