"""What is to be built."""
