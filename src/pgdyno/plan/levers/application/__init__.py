"""Application layer: PostgreSQL's own settings."""
