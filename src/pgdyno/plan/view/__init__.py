"""A plan, a host, a server and levers as text. Pure."""
