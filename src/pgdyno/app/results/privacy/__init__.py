"""Facts about a machine that a bundle may contain."""
