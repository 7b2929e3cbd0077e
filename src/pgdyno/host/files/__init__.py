"""Files of the inspected host, and the formats in which the kernel writes values."""
