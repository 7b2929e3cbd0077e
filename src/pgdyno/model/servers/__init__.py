"""A server, its settings and its queries."""
