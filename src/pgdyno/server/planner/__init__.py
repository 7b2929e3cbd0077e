"""How the server plans a query."""
