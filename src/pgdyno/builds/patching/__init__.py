"""Patches to PostgreSQL's source: the catalogue, and how they are applied without a program."""
