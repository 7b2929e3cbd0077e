"""Patches to PostgreSQL's source: the catalogue, and applying them without patch(1)."""
