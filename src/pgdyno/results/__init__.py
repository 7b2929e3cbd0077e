"""Reports, bundles, fleets and machine comparisons of stored experiments."""
