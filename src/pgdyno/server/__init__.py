"""Adapter: PostgreSQL servers — the embedded one, managed ones that we start, attached ones that we reach."""
