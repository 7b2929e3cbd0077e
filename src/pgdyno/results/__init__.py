"""Pages and bundles of stored experiments."""
