"""The server whose settings are changed: connection, privileges, reload, restart."""
