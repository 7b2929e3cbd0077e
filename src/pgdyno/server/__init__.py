"""Adapter for PostgreSQL servers: embedded, managed and attached ones.

pgdyno starts managed servers, and connects to attached ones.
"""
