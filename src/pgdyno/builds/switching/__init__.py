"""Check whether other programs can run a server, and switch the server to them."""
