"""Results in, one HTML page or text out. No database, no clock."""
