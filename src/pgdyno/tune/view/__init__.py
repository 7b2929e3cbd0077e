"""A search and its answer, as text and for the page. Pure."""
