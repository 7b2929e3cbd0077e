"""Types of a cell: a server's host, and the hosts that load it."""
