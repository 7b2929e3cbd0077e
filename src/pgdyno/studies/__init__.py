"""Comparisons and bundled studies, with their views."""
