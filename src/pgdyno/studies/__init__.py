"""Comparisons and bundled studies, and their views."""
