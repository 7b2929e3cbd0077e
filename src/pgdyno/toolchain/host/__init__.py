"""What this machine has to build with."""
