"""The server to change: connection, privileges, reload, restart."""
