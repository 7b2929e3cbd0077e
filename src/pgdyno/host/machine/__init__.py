"""What the machine is, what it may use, and what sets its values."""
