"""Variants, and what no variant may have."""
