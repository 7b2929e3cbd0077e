"""Derives sessions' statements and transactions from a server's log. Pure."""
