"""Curves over clients and workers."""
