"""What a bundle may show of a machine."""
