"""Contents of PostgreSQL's configuration files, and edits by other users."""
