"""Access to other hosts, by ssh with the user's own configuration; access to Dask's scheduler."""
