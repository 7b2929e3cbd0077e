"""A cell: check its hosts, and forward commands to the server's host."""
