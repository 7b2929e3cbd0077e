"""Reports and bundles of stored experiments."""
