"""Curves over clients and workers. Pure."""
