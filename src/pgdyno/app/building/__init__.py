"""Building PostgreSQL from source, and the servers that are installed."""
