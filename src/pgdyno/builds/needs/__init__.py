"""Build prerequisites of this machine."""
