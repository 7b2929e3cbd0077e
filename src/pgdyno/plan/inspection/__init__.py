"""Facts about a server and its programs, read before planning."""
