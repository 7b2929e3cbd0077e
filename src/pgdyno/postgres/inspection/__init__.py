"""Server inspection: facts from a server's catalogs, data directory and processes."""
