"""What is read from a running server again and again."""
