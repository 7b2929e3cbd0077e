"""Whether other programs can run a server, and switching it to them."""
