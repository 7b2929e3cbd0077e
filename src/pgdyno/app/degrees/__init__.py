"""How many parallel workers a query gets, and why."""
