"""The number of parallel workers of a query: its causes, obstacles and remedies."""
