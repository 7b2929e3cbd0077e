"""Plans of queries, and what limits their degree."""
