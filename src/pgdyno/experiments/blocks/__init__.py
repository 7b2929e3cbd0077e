"""What was measured: slices, drains and disturbances become blocks of metrics."""
