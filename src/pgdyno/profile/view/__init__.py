"""A profile as text and as an HTML page. Pure."""
