"""A host and its values."""
