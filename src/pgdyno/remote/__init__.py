"""Other hosts, reached by the ssh program with the user's own configuration; Dask's scheduler."""
