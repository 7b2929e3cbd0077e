"""Plans for a server, and the configurations that studies compare."""
