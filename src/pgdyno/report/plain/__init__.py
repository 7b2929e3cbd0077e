"""What other commands print."""
