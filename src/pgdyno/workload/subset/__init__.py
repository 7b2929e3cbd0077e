"""A consistent sample of a database's rows: pure functions that choose the rows of each table."""
