"""Variants, and settings that no variant may have."""
