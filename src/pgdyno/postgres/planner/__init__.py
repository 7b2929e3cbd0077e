"""How the server plans a query, and the limits of its parallel degree."""
