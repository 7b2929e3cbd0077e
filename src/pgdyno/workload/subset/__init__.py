"""A consistent sample of a database's rows: which tables give which rows, in pure functions."""
