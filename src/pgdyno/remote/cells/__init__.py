"""A cell: its hosts checked, a command carried to the server's host."""
