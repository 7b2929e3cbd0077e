"""What makes the program faster after compiling."""
