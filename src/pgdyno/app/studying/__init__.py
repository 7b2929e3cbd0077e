"""Comparisons and bundled studies."""
