"""Facts about a server and its programs, collected before planning."""
