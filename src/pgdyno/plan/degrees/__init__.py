"""A query's number of parallel workers: causes, obstacles and remedies."""
