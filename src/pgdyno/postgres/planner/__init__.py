"""Query plans from the server, and the limits of the parallel degree."""
