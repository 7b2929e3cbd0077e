"""From a server's log to the statements that sessions ran, in their transactions. Pure."""
