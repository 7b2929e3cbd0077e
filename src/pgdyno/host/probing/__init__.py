"""What operations cost here, and how CPUs idle: measured, not read."""
